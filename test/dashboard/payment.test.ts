import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { customer } from '../kit/fixture.ts'
import { proveLedger } from '../kit/ledger.ts'
import { makePerson } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The page of one payment: why it failed, its receipt, and giving it back.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

/** Makes a payment, and waits until it ended. @returns its id in REST */
async function pay(shop: TestMerchant, amount: number, scenario = '00', reference?: string): Promise<number> {
  const body = { amount, customer_phone: customer(scenario, '00'), payment_method: 'OperatorA', reference }
  const answer = await service.rest('POST', '/pay', { token: shop.token, body })
  expect(answer.status).toBe(202)
  const id = Number(answer.body.data.transaction_id)
  await eventually(async () => {
    const { rows } = await service.database.owner.query<{ status: string }>(
      'SELECT status FROM transaction WHERE id = $1',
      [id],
    )
    expect(rows[0]?.status).not.toBe('pending')
  })
  return id
}

async function open(shop: TestMerchant, id: number, role: 'owner' | 'viewer' = 'owner'): Promise<Page> {
  const person = await makePerson(service, shop.merchantId, { role })
  const page = await signedIn(browser, service, person, `/payments/${id}`)
  await page.getByRole('heading', { name: 'Ce qui s’est passé' }).waitFor()
  return page
}

/** The refunds of a payment in the books: their amounts and statuses. */
async function refundsOf(id: number): Promise<string[]> {
  const { rows } = await service.database.owner.query<{ line: string }>(
    `SELECT amount || ' ' || status AS line FROM transaction WHERE refund_of_id = $1 ORDER BY id`,
    [id],
  )
  return rows.map(({ line }) => line)
}

const mainOf = async (page: Page) => (await page.locator('main').innerText()).replaceAll(/\s+/g, ' ')
const dialogOf = async (page: Page) => (await page.getByRole('dialog').innerText()).replaceAll(/\s+/g, ' ')
const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).click()

describe.skipIf(cannotLook)('a payment', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    const problems = await proveLedger(service.database.database.pool)
    await browser.close()
    await service.close()
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
  })

  test('a person finds in the list why a payment failed, and what to do', async () => {
    const shop = await service.merchant('Épicerie')
    await pay(shop, 7_000, '02')
    const page = await signedIn(browser, service, await makePerson(service, shop.merchantId))
    await page.getByRole('link', { name: 'Paiements', exact: true }).click()
    await page.locator('.rows > li').first().getByRole('link').click()
    await page.getByRole('heading', { name: 'Pourquoi il a échoué' }).waitFor()
    const shown = await mainOf(page)
    expect(shown).toContain('Le solde du compte est insuffisant.')
    expect(shown).toContain('C’est au client d’agir.')
    expect(shown).toMatch(/Paiement demandé.*Demande envoyée à l’opérateur.*Nouvel état : échoué/)
    expect(await page.getByRole('button', { name: 'Rembourser' }).count()).toBe(0)
    await page.close()
  })

  test('the receipt opens', async () => {
    const shop = await service.merchant('Épicerie')
    const page = await open(shop, await pay(shop, 7_000))
    const address = await page.getByRole('link', { name: 'Voir le reçu' }).getAttribute('href')
    const receipt = await fetch(String(address))
    expect([receipt.status, await receipt.text()]).toEqual([200, expect.stringContaining('Épicerie')])
    await page.close()
  })

  test('a part is given back after a second look, then the rest, and nothing is left', async () => {
    const shop = await service.merchant('Épicerie')
    const id = await pay(shop, 9_000)
    const page = await open(shop, id)
    await press(page, 'Rembourser')
    await page.getByLabel('Montant à rendre').fill('9 001')
    await press(page, 'Continuer')
    await page.getByText('Écrivez un montant entier, au plus 9 000 F CFA.').waitFor()
    await page.getByLabel('Montant à rendre').fill('999')
    await press(page, 'Continuer')
    await press(page, /Rendre 999/)
    await page.locator('dialog .problem', { hasText: 'Au moins 1 000 F CFA' }).waitFor()
    await page.getByLabel('Montant à rendre').fill('4 000')
    await page.getByLabel('Motif (facultatif)').fill('<b>trop perçu</b>')
    await press(page, 'Continuer')
    expect(await dialogOf(page)).toMatch(
      /4 000 F CFA quittent votre solde et retournent à la personne qui a payé, chez OperatorA\. <b>trop/,
    )
    expect(await refundsOf(id)).toEqual([])
    await press(page, /Rendre 4.000/)
    await page.getByText(/4.000.F.CFA ont été rendus au client\./).waitFor()
    await press(page, 'Fermer')
    await eventually(async () => expect(await mainOf(page)).toContain('Déjà rendu 4 000 F CFA'))
    expect(await refundsOf(id)).toEqual(['4000 success'])

    await press(page, 'Rembourser')
    await eventually(async () => expect(await page.getByLabel('Montant à rendre').inputValue()).toBe('5000'))
    await press(page, 'Continuer')
    await press(page, /Rendre 5.000/)
    await page.getByText(/5.000.F.CFA ont été rendus au client\./).waitFor()
    await press(page, 'Fermer')
    await eventually(async () =>
      expect(await mainOf(page)).toContain('Vous avez rendu tout l’argent au client.'),
    )
    expect(await page.getByRole('button', { name: 'Rembourser' }).count()).toBe(0)
    expect(await refundsOf(id)).toEqual(['4000 success', '5000 success'])
    await page.close()
  })

  test('a refund whose answer was lost is made once, however often it is sent', async () => {
    const shop = await service.merchant('Épicerie')
    const id = await pay(shop, 9_000)
    const page = await open(shop, id)
    await press(page, 'Rembourser')
    await page.getByLabel('Montant à rendre').fill('3000')
    await press(page, 'Continuer')
    await page.route('**/graphql', async (route) => {
      if (!route.request().postData()?.includes('refundTransaction')) return route.continue()
      await route.fetch()
      return route.abort()
    })
    await press(page, /Rendre 3.000/)
    await page.getByText('Nous ne savons pas encore si le remboursement est parti.').waitFor()
    await press(page, 'Réessayer')
    await page.getByText('Nous ne savons pas encore si le remboursement est parti.').waitFor()
    // Closing the window forgets nothing.
    await press(page, 'Fermer')
    await press(page, 'Rembourser')
    await page.unroute('**/graphql')
    await press(page, 'Réessayer')
    await page.getByText(/3.000.F.CFA ont été rendus au client\./).waitFor()
    expect(await refundsOf(id)).toEqual(['3000 success'])
    await page.close()
  })

  test('a refusal after a lost answer, and another page, begin no second refund', async () => {
    const shop = await service.merchant('Épicerie')
    const id = await pay(shop, 9_000)
    const page = await open(shop, id)
    await press(page, 'Rembourser')
    await page.getByLabel('Montant à rendre').fill('3000')
    await press(page, 'Continuer')
    const refused = { data: null, errors: [{ message: 'Later.', extensions: { code: 'RATE_LIMITED' } }] }
    let tries = 0
    await page.route('**/graphql', async (route) => {
      if (!route.request().postData()?.includes('refundTransaction')) return route.continue()
      tries += 1
      if (tries > 1) return route.fulfill({ json: refused })
      await route.fetch()
      return route.abort()
    })
    await press(page, /Rendre 3.000/)
    await page.getByText('Nous ne savons pas encore si le remboursement est parti.').waitFor()
    await press(page, 'Réessayer')
    await page.getByText('Trop de demandes.').waitFor()
    expect(await dialogOf(page)).toContain('Résultat inconnu 3 000 F CFA')
    await press(page, 'Fermer')
    await page.getByRole('link', { name: '← Paiements' }).click()
    await page.locator('.rows > li').last().getByRole('link').click()
    await press(page, 'Rembourser')
    expect(await dialogOf(page)).toContain('Résultat inconnu 3 000 F CFA')
    await page.reload()
    await press(page, 'Rembourser')
    expect(await dialogOf(page)).toContain('Résultat inconnu 3 000 F CFA')
    const other = await browser.context.newPage()
    await other.goto(page.url())
    await page.close()
    await press(other, 'Rembourser')
    expect(await dialogOf(other)).toContain('Résultat inconnu 3 000 F CFA')
    await press(other, 'Réessayer')
    await other.getByText(/3.000.F.CFA ont été rendus au client\./).waitFor()
    expect(await refundsOf(id)).toEqual(['3000 success'])
    await other.close()
  })

  test('an answer to a refund that came to a page that was left is asked for again', async () => {
    const shop = await service.merchant('Épicerie')
    const id = await pay(shop, 9_000)
    const page = await open(shop, id)
    await press(page, 'Rembourser')
    await page.getByLabel('Montant à rendre').fill('3000')
    await press(page, 'Continuer')
    let release = () => {}
    const isReleased = new Promise<void>((resolve) => (release = resolve))
    await page.route('**/graphql', async (route, request) => {
      if (request.postData()?.includes('refundTransaction')) await isReleased
      return route.continue()
    })
    await press(page, /Rendre 3.000/)
    await press(page, 'Fermer')
    await page.getByRole('link', { name: '← Paiements' }).click()
    const isRefund = (data: string | null) => data?.includes('refundTransaction') === true
    const late = page.waitForResponse((answer) => isRefund(answer.request().postData()))
    release()
    await late
    await page.goto(`${service.url}/app/payments/${id}`)
    await press(page, 'Rembourser')
    expect(await dialogOf(page)).toContain('Résultat inconnu 3 000 F CFA')
    await press(page, 'Réessayer')
    await page.getByText(/3.000.F.CFA ont été rendus au client\./).waitFor()
    expect(await refundsOf(id)).toEqual(['3000 success'])
    await page.close()
  })

  test('a service that is busy carries the refund out later, under the same key', async () => {
    const shop = await service.merchant('Épicerie')
    const id = await pay(shop, 9_000)
    const page = await open(shop, id)
    await press(page, 'Rembourser')
    await page.getByLabel('Montant à rendre').fill('3000')
    await press(page, 'Continuer')
    const keys: (string | undefined)[] = []
    const busy = { __typename: 'OverloadedError', code: 'OVERLOADED', message: 'Busy.', retryAfter: 1 }
    await page.route('**/graphql', async (route) => {
      if (!route.request().postData()?.includes('refundTransaction')) return route.continue()
      keys.push(route.request().headers()['idempotency-key'])
      if (keys.length > 1) return route.continue()
      return route.fulfill({ json: { data: { refundTransaction: busy } } })
    })
    await press(page, /Rendre 3.000/)
    await page.getByText('Le service est occupé.').waitFor()
    expect(await dialogOf(page)).toContain('Résultat inconnu 3 000 F CFA')
    await press(page, 'Réessayer')
    await page.getByText(/3.000.F.CFA ont été rendus au client\./).waitFor()
    expect([new Set(keys).size, keys.length]).toEqual([1, 2])
    expect(await refundsOf(id)).toEqual(['3000 success'])
    await page.close()
  })

  test('a double click sends no money, and no part of a franc is taken for thousands', async () => {
    const shop = await service.merchant('Épicerie')
    const id = await pay(shop, 9_000)
    const page = await open(shop, id)
    await press(page, 'Rembourser')
    for (const typed of ['50,00', '10.5', '1.00.00', '1e3', '-2000']) {
      await page.getByLabel('Montant à rendre').fill(typed)
      await press(page, 'Continuer')
      await page.getByText('Écrivez un montant entier, au plus 9 000 F CFA.').waitFor()
    }
    await page.getByLabel('Montant à rendre').fill('2.000')
    await press(page, 'Continuer')
    // The button that sends stands where the pointer is: both buttons are then hit by one double click.
    await page.getByRole('button', { name: /Rendre 2.000/ }).dispatchEvent('click', { detail: 2 })
    expect(await page.getByRole('button', { name: /Rendre 2.000/ }).count()).toBe(1)
    expect(await refundsOf(id)).toEqual([])
    await page.close()
  })

  test('an answer without the payment, because the service failed, takes nothing from the page', async () => {
    const shop = await service.merchant('Épicerie')
    const id = await pay(shop, 9_000)
    const page = await open(shop, id)
    await press(page, 'Rembourser')
    await page.getByLabel('Montant à rendre').fill('3000')
    await page.route('**/graphql', async (route) => {
      if (!route.request().postData()?.includes('PaymentQuery')) return route.continue()
      const errors = [{ message: 'Failed.', path: ['transaction'], extensions: { code: 'INTERNAL' } }]
      return route.fulfill({ json: { data: { asOfSequence: 1, transaction: null }, errors } })
    })
    await service.graphql(
      `mutation { refundTransaction(id: "${id}", amount: 1000) { __typename } }`,
      {},
      shop.token,
    )
    await page.getByText('Le service n’a pas répondu').waitFor()
    expect(await page.getByLabel('Montant à rendre').inputValue()).toBe('3000')
    await page.reload()
    await page.getByRole('button', { name: 'Réessayer' }).waitFor()
    expect(await mainOf(page)).not.toContain('n’existe pas')
    await page.unroute('**/graphql')
    await page.close()
  })

  test('a refund that another client makes is seen at once', async () => {
    const shop = await service.merchant('Épicerie')
    const id = await pay(shop, 9_000)
    const page = await open(shop, id)
    const { body } = await service.graphql(
      `mutation { refundTransaction(id: "${id}") { __typename } }`,
      {},
      shop.token,
    )
    expect(body['data']).toEqual({ refundTransaction: { __typename: 'PaymentInitiation' } })
    await page.getByText('Remboursement payé').waitFor()
    await eventually(async () => expect(await mainOf(page)).toContain('Déjà rendu 9 000 F CFA'))
    await page.close()
  })

  test('a viewer is not offered a refund, and the service refuses one', async () => {
    const shop = await service.merchant('Épicerie')
    const id = await pay(shop, 9_000)
    const page = await open(shop, id, 'viewer')
    expect(await page.getByRole('link', { name: 'Voir le reçu' }).count()).toBe(1)
    expect(await page.getByRole('button', { name: 'Rembourser' }).count()).toBe(0)
    const query = `mutation { refundTransaction(id: "${id}") { __typename } }`
    const options = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ query }),
    }
    const sent = await page.evaluate<{ errors: { extensions: { code: string } }[] }>(
      `fetch('/graphql', ${JSON.stringify(options)}).then((answer) => answer.json())`,
    )
    expect(sent.errors[0]?.extensions.code).toBe('FORBIDDEN')
    expect(await refundsOf(id)).toEqual([])
    await page.close()
  })

  test('the payment of another merchant does not exist', async () => {
    const [shop, other] = [await service.merchant('Épicerie'), await service.merchant('Autre')]
    const id = await pay(other, 9_000)
    const page = await signedIn(browser, service, await makePerson(service, shop.merchantId))
    for (const each of [String(id), '999999999', 'nothing', '%3Cscript%3E']) {
      await page.goto(`${service.url}/app/payments/${each}`)
      await page.getByText('Ce paiement n’existe pas dans ce compte.').waitFor()
      expect(await mainOf(page)).not.toContain('9 000')
    }
    await page.close()
  })

  test('references with code in them are shown as text', async () => {
    const attack = `<img src=x onerror="document.title='broken'">`
    const shop = await service.merchant('Épicerie')
    const page = await open(shop, await pay(shop, 9_000, '00', attack))
    expect(await mainOf(page)).toContain(attack)
    expect(await page.locator('main img').count()).toBe(0)
    expect(await page.title()).not.toContain('broken')
    await page.close()
  })
})

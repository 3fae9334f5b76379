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

// The list of payments and the page of one, while money moves.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

interface Paid {
  amount: number
  scenario?: string
  parameter?: string
  operator?: string
  reference?: string
}

/** Asks for a payment as a second client. @returns its id in REST */
async function pay(shop: TestMerchant, { amount, scenario = '00', parameter = '00', ...more }: Paid) {
  const body = {
    amount,
    customer_phone: customer(scenario, parameter),
    payment_method: more.operator ?? 'OperatorA',
    reference: more.reference,
  }
  const answer = await service.rest('POST', '/pay', { token: shop.token, body })
  expect(answer.status).toBe(202)
  return Number(answer.body.data.transaction_id)
}

async function waitFor(shop: TestMerchant, status: string, count: number): Promise<void> {
  await eventually(async () => {
    const { rows } = await service.database.owner.query(
      'SELECT FROM transaction WHERE merchant_id = $1 AND status::text = $2',
      [shop.merchantId, status],
    )
    expect(rows).toHaveLength(count)
  })
}

const plain = (text: string) => text.replaceAll(/\s+/g, ' ')
/** The amounts of the list, as a person reads them. */
async function amountsOf(page: Page): Promise<string[]> {
  const texts = await page.locator('.rows > li .end strong').allInnerTexts()
  return texts.map(plain)
}
const shows = (page: Page, amounts: readonly string[]) =>
  eventually(async () => expect(await amountsOf(page)).toEqual(amounts))

/** Opens the list of payments as the owner of a shop. */
async function listOf(shop: TestMerchant, path = '/payments'): Promise<Page> {
  const page = await signedIn(browser, service, await makePerson(service, shop.merchantId), path)
  await page.getByText('en direct').waitFor()
  return page
}

describe.skipIf(cannotLook)('payments', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    const problems = await proveLedger(service.database.database.pool)
    await browser.close()
    await service.close()
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
  })

  test('a search and each filter select payments; the address keeps them', async () => {
    const shop = await service.merchant('Épicerie')
    await pay(shop, { amount: 1_000, reference: 'Facture-Été' })
    await pay(shop, { amount: 2_000, scenario: '02' })
    await pay(shop, { amount: 3_000, operator: 'OperatorB', parameter: '03' })
    await waitFor(shop, 'success', 2)
    const page = await listOf(shop)
    await shows(page, ['3 000 F CFA', '2 000 F CFA', '1 000 F CFA'])
    await page.getByText('3 paiements').waitFor()

    await page.getByRole('link', { name: 'Échoués' }).click()
    await shows(page, ['2 000 F CFA'])
    await page.goBack()
    await shows(page, ['3 000 F CFA', '2 000 F CFA', '1 000 F CFA'])

    await page.getByRole('searchbox').fill('ete')
    await page.getByRole('searchbox').press('Enter')
    await shows(page, ['1 000 F CFA'])
    await page.getByRole('searchbox').fill('é')
    await page.getByRole('searchbox').press('Enter')
    await page.getByText('Écrivez au moins trois lettres ou chiffres.').waitFor()
    await page.getByRole('searchbox').fill('')
    await page.getByRole('searchbox').press('Enter')
    await shows(page, ['3 000 F CFA', '2 000 F CFA', '1 000 F CFA'])

    await page.getByText('Filtres', { exact: true }).click()
    await page.getByLabel('Opérateur').selectOption('OperatorA')
    await page.getByLabel('Montant minimal').fill('1 500')
    await page.getByRole('button', { name: 'Appliquer' }).click()
    await shows(page, ['2 000 F CFA'])
    await page.reload()
    await shows(page, ['2 000 F CFA'])
    await page.getByText('Filtres (2)', { exact: true }).click()
    expect(await page.getByLabel('Opérateur').inputValue()).toBe('OperatorA')
    await page.getByLabel('Montant maximal').fill('1 600')
    await page.getByRole('button', { name: 'Appliquer' }).click()
    await page.getByText('Aucun paiement ne correspond.').waitFor()
    await page.close()
  })

  test('a filter by day and by link', async () => {
    const shop = await service.merchant('Épicerie')
    const made = await service.rest('POST', '/payment-links', {
      token: shop.token,
      body: { title: 'Café', amount: 700 },
    })
    await pay(shop, { amount: 5_000 })
    const form = new URLSearchParams({ amount: '700', phone: customer('00', '00'), operator: 'OperatorA' })
    const paid = await fetch(made.body.data.url, { method: 'POST', body: form, redirect: 'manual' })
    expect(paid.status).toBe(303)
    const page = await listOf(shop)
    await shows(page, ['700 F CFA', '5 000 F CFA'])
    await page.getByText('Filtres', { exact: true }).click()
    await page.getByLabel('Lien de paiement').selectOption({ label: 'Café' })
    await page.getByRole('button', { name: 'Appliquer' }).click()
    await shows(page, ['700 F CFA'])
    const today = new Date().toISOString().slice(0, 10)
    await page.getByText('Filtres (1)', { exact: true }).click()
    await page.getByLabel('Du', { exact: true }).fill(today)
    await page.getByLabel('Au', { exact: true }).fill(today)
    await page.getByRole('button', { name: 'Appliquer' }).click()
    await eventually(() => expect(page.url()).toContain(`from=${today}&to=${today}`))
    await shows(page, ['700 F CFA'])
    await page.getByText('Filtres (3)', { exact: true }).click()
    await page.getByLabel('Du', { exact: true }).fill('2020-01-01')
    await page.getByLabel('Au', { exact: true }).fill('2020-01-31')
    await page.getByRole('button', { name: 'Appliquer' }).click()
    await page.getByText('Aucun paiement ne correspond.').waitFor()
    await page.close()
  })

  test('a filter that was kept is there the next morning, in its account only', async () => {
    const shop = await service.merchant('Épicerie')
    await pay(shop, { amount: 2_000, scenario: '02' })
    await pay(shop, { amount: 1_000 })
    await waitFor(shop, 'success', 1)
    const page = await listOf(shop, '/payments?status=failed&operator=OperatorA')
    await shows(page, ['2 000 F CFA'])
    await page.getByRole('button', { name: 'Enregistrer ce filtre' }).click()
    await page.getByLabel('Nom du filtre').fill('Échecs du matin')
    await page.getByRole('button', { name: 'Enregistrer', exact: true }).click()
    await page.goto(`${service.url}/app/payments`)
    await shows(page, ['1 000 F CFA', '2 000 F CFA'])
    await page.getByRole('link', { name: 'Échecs du matin' }).click()
    await shows(page, ['2 000 F CFA'])
    const stored = await page.evaluate<string[]>('Object.keys(localStorage)')
    expect(stored).toEqual([`filters-${shop.merchantId}`])
    await page.getByRole('button', { name: 'Oublier « Échecs du matin »' }).click()
    await page.reload()
    await shows(page, ['2 000 F CFA'])
    expect(await page.getByRole('link', { name: 'Échecs du matin' }).count()).toBe(0)
    await page.close()
  })

  test('the list changes under the eye without losing its position', async () => {
    const shop = await service.merchant('Épicerie')
    for (let nth = 1; nth <= 25; nth += 1)
      await pay(shop, { amount: 1_000 * nth, scenario: nth === 10 ? '12' : '00', parameter: '01' })
    await waitFor(shop, 'success', 24)
    const page = await listOf(shop)
    await eventually(async () => expect(await amountsOf(page)).toHaveLength(20))
    await page.getByRole('button', { name: 'Voir la suite' }).click()
    await eventually(async () => expect(await amountsOf(page)).toHaveLength(25))
    const row = page.locator('.rows > li', { hasText: '10 000 F CFA' })
    await row.getByRole('link').focus()
    const before = await row.boundingBox()
    expect(plain(await row.innerText())).toMatch(/en attente$/)

    await pay(shop, { amount: 99_000, reference: 'la-nouvelle' })
    await page.getByRole('button', { name: '1 nouveau paiement : afficher' }).waitFor()
    await service.app.services.sandbox?.advanceClock(2 * 60 * 60_000)
    await eventually(async () => expect(plain(await row.innerText())).toMatch(/réussi$/))
    expect(await row.boundingBox()).toEqual(before)
    expect(await amountsOf(page)).toHaveLength(25)

    await page.getByRole('button', { name: '1 nouveau paiement : afficher' }).click()
    const amounts = await amountsOf(page)
    expect([amounts[0], amounts.length, new Set(amounts).size]).toEqual(['99 000 F CFA', 26, 26])

    // The way to one payment and back loses nothing, and what happened meanwhile is shown.
    const position = await page.evaluate<number>('scrollY')
    await row.getByRole('link').click()
    await page.getByRole('heading', { name: 'Ce qui s’est passé' }).waitFor()
    expect(await page.evaluate('scrollY')).toBe(0)
    await pay(shop, { amount: 88_000 })
    await page.getByRole('link', { name: '← Paiements' }).click()
    await page.getByRole('button', { name: '1 nouveau paiement : afficher' }).waitFor()
    expect(await amountsOf(page)).toEqual(amounts)
    expect([await page.evaluate('scrollY'), position > 500]).toEqual([position, true])
    await page.getByRole('button', { name: '1 nouveau paiement : afficher' }).click()
    await shows(page, ['88 000 F CFA', ...amounts])
    await page.close()
  })

  test('an older payment that enters the filter is at its position', async () => {
    const shop = await service.merchant('Épicerie')
    await pay(shop, { amount: 1_000 })
    await pay(shop, { amount: 2_000, scenario: '12', parameter: '01' })
    await pay(shop, { amount: 3_000 })
    await waitFor(shop, 'success', 2)
    const page = await listOf(shop, '/payments?status=success')
    await shows(page, ['3 000 F CFA', '1 000 F CFA'])
    await service.app.services.sandbox?.advanceClock(2 * 60 * 60_000)
    await shows(page, ['3 000 F CFA', '2 000 F CFA', '1 000 F CFA'])
    await page.getByText('3 paiements').waitFor()
    expect(await page.getByRole('button', { name: 'nouveau' }).count()).toBe(0)
    await page.close()
  })

  test('a payment that ends while its page of the list is read is shown as it ended', async () => {
    const shop = await service.merchant('Épicerie')
    const person = await makePerson(service, shop.merchantId)
    const page = await signedIn(browser, service, person)
    const frames: string[] = []
    page.on('websocket', (socket) =>
      socket.on('framereceived', ({ payload }) => void frames.push(String(payload))),
    )
    await page.goto(`${service.url}/app/payments`)
    await page.getByText('en direct').waitFor()
    let isHeld = false
    await page.route('**/graphql', async (route) => {
      if (isHeld || !route.request().postData()?.includes('PaymentsQuery')) return route.continue()
      isHeld = true
      const answer = await route.fetch()
      await service.app.services.sandbox?.advanceClock(2 * 60 * 60_000)
      await eventually(() => expect(frames.join()).toContain('"status":"SUCCESS"'))
      return route.fulfill({ response: answer })
    })
    await pay(shop, { amount: 1_000, scenario: '12', parameter: '01' })
    await shows(page, ['1 000 F CFA'])
    await eventually(async () => expect(await page.locator('.rows').innerText()).toMatch(/réussi$/))
    await page.close()
  })

  test('a service that refuses is not asked without a pause', async () => {
    const page = await listOf(await service.merchant('Épicerie'))
    const refused = { data: null, errors: [{ message: 'Later.', extensions: { code: 'RATE_LIMITED' } }] }
    let reads = 0
    await page.route('**/graphql', (route) => {
      if (!route.request().postData()?.includes('PaymentsQuery')) return route.continue()
      reads += 1
      return route.fulfill({ json: refused })
    })
    await page.getByRole('link', { name: 'Échoués' }).click()
    await page.getByRole('button', { name: 'Réessayer' }).waitFor()
    await page.waitForTimeout(1_500)
    expect(reads).toBe(1)
    await page.unroute('**/graphql')
    await page.getByText('Aucun paiement ne correspond.').waitFor()
    await page.close()
  })

  test('payments of the time without a network are in the list afterwards, each once', async () => {
    const shop = await service.merchant('Épicerie')
    await pay(shop, { amount: 1_000 })
    const page = await listOf(shop)
    await shows(page, ['1 000 F CFA'])
    await browser.context.setOffline(true)
    await page.getByText('hors ligne').waitFor()
    for (let nth = 2; nth <= 26; nth += 1) await pay(shop, { amount: nth * 1_000 })
    await waitFor(shop, 'success', 26)
    await browser.context.setOffline(false)
    const expected = Array.from({ length: 26 }, (_, index) => `${26 - index} 000 F CFA`)
    await eventually(async () => expect(await amountsOf(page)).toEqual(expected))
    await page.close()
  })
})

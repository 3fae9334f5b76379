import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { approvePayout, batch, becomes, payOut, team } from '../kit/approval-team.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { customer } from '../kit/fixture.ts'
import { proveLedger } from '../kit/ledger.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// A person sees what waits for an approval, and decides over what the page shows.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

const openApprovals = (person: PasswordMember) => signedIn(browser, service, person, '/approvals')
/** Reads a card, without the marks that keep the direction of names. */
const cardOf = async (page: Page) =>
  (await page.locator('section.card').innerText()).replaceAll(/[\u2068\u2069]/g, '').replaceAll(/\s+/g, ' ')
const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first().click()
const focused = (page: Page) => page.evaluate<string>('document.activeElement.innerText')
const saysNothingWaits = (page: Page) => page.getByText('Rien n’attend une approbation.').waitFor()

describe.skipIf(cannotLook)('approvals', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    const problems = await proveLedger(service.database.database.pool)
    await browser.close()
    await service.close()
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
  })

  test('a payout appears by itself, names payee and author, and is sent when approved', async () => {
    const { clerk, boss } = await team(service)
    const page = await openApprovals(boss)
    await saysNothingWaits(page)
    const id = await payOut(service, clerk, 25_000)
    await page.getByRole('heading', { name: 'Versement à' }).waitFor()
    expect(await cardOf(page)).toMatch(
      /25 000 F CFA.*70 00 00 .. · OperatorA.*dès l’approbation.*Demandé par Moussa <b>Keïta<\/b>/,
    )
    expect(await cardOf(page)).toMatch(/<\/b>.*Approbations 0 sur 1.*À décider/)
    await press(page, /Approuver 25.000/)
    await page.getByText(' : approuvé.').waitFor()
    await saysNothingWaits(page)
    await becomes(service, 'payout', id, 'completed')
    await page.close()
  })

  test('the author is not offered to approve, nor is a viewer', async () => {
    const { shop, clerk } = await team(service)
    await payOut(service, clerk, 25_000)
    const own = await openApprovals(clerk)
    await own.getByText('Vous avez fait cette demande : une autre personne doit l’approuver.').waitFor()
    expect(await own.getByRole('button', { name: 'Approuver' }).count()).toBe(0)
    await own.close()
    const viewer = await openApprovals(await makePerson(service, shop.merchantId, { role: 'viewer' }))
    await viewer.getByText('Votre rôle ne permet pas d’approuver.').waitFor()
    expect(await viewer.getByRole('button', { name: 'Approuver' }).count()).toBe(0)
    await viewer.close()
  })

  test('two approvals: the first is counted under the eyes of the second, who sends the payout', async () => {
    const { shop, clerk, boss } = await team(service, 2)
    const id = await payOut(service, clerk, 25_000)
    const page = await openApprovals(boss)
    await press(page, /Approuver 25.000/)
    await page.getByText('votre approbation compte. Il en faut encore.').waitFor()
    await page.getByText('Vous avez approuvé. Une autre personne doit approuver aussi.').waitFor()
    expect(await cardOf(page)).toContain('Approbations 1 sur 2 · Awa Traoré')
    await becomes(service, 'payout', id, 'pending')
    const second = await makePerson(service, shop.merchantId, { role: 'admin' })
    await approvePayout(service, second, id)
    await saysNothingWaits(page)
    await becomes(service, 'payout', id, 'completed')
    await page.close()
  })

  test('a batch shows all its recipients, page by page, and the numbers that it pays twice', async () => {
    const { clerk, boss } = await team(service)
    const recipients = Array.from({ length: 61 }, (_, index) => ({
      name: `Personne ${index + 1}`,
      account: index === 60 ? '70000101' : `700001${String(index + 1).padStart(2, '0')}`,
      payment_method: 'OperatorA',
      amount: 1_000,
    }))
    const id = await batch(service, clerk, 'Salaires', recipients)
    const page = await openApprovals(boss)
    await page.getByText('Voir les 61 personnes').click()
    const rows = page.locator('.rows > li')
    await eventually(async () => expect(await rows.count()).toBe(50))
    await press(page, 'Voir la suite')
    await eventually(async () => expect(await rows.count()).toBe(61))
    expect(new Set(await rows.allInnerTexts()).size).toBe(61)
    expect(await cardOf(page)).toContain('chaque ligne est payée : 70 00 01 01')
    await press(page, /Approuver 61.000/)
    await page.getByText(' : approuvé.').waitFor()
    await becomes(service, 'batch', id, 'completed')
    await page.close()
  })

  test('a rejection needs a reason, and gives the money back', async () => {
    const { clerk, boss } = await team(service)
    const id = await payOut(service, clerk, 25_000)
    const page = await openApprovals(boss)
    await press(page, 'Refuser')
    expect(await page.getByRole('dialog').innerText()).toMatch(/Versement à .*\s+25.000.F.CFA/)
    await press(page, 'Refuser la demande')
    await page.getByText('Écrivez pourquoi vous refusez.').waitFor()
    await becomes(service, 'payout', id, 'pending')
    await page.getByLabel('Motif du refus').fill('<i>facture inconnue</i>')
    await press(page, 'Refuser la demande')
    await page.getByText('refusé. L’argent mis de côté est de nouveau disponible.').waitFor()
    await becomes(service, 'payout', id, 'cancelled')
    await saysNothingWaits(page)
    expect(await focused(page)).toBe('Approbations')
    const { body } = await service.graphql(
      `{ payout(id: "${id}") { approval { reason } } balance { reserved available } }`,
      {},
      clerk.token,
    )
    expect(body['data']).toEqual({
      payout: { approval: { reason: '<i>facture inconnue</i>' } },
      balance: { reserved: 0, available: 1_000_000 },
    })
    await page.close()
  })

  test('an approval counts only for what the page shows', async () => {
    const { clerk, boss } = await team(service)
    const id = await payOut(service, clerk, 25_000)
    const page = await openApprovals(boss)
    await page.route('**/graphql', async (route) => {
      // Only the list has another digest: a page that read the digest anew for the approval would be caught.
      if (!route.request().postData()?.includes('ApprovalsQuery')) return route.continue()
      const response = await route.fetch()
      const text = (await response.text()).replaceAll(
        /"digest":"[0-9a-f]{64}"/g,
        `"digest":"${'0'.repeat(64)}"`,
      )
      return route.fulfill({ response, body: text })
    })
    await page.reload()
    await press(page, /Approuver 25.000/)
    await page
      .getByText('La demande a changé, ou une autre personne a décidé avant vous. Relisez-la.')
      .waitFor()
    expect(await cardOf(page)).toContain('Approbations 0 sur 1')
    await becomes(service, 'payout', id, 'pending')
    await page.close()
  })

  test('an approval whose answer was lost counts, and the page says that nothing waits', async () => {
    const { clerk, boss } = await team(service)
    const id = await payOut(service, clerk, 25_000)
    const page = await openApprovals(boss)
    await page.route('**/graphql', async (route) => {
      if (!route.request().postData()?.includes('approvePayout')) return route.continue()
      await route.fetch()
      return route.abort()
    })
    await press(page, /Approuver 25.000/)
    await page.getByText(/^Versement à .*n’attend plus d’approbation/).waitFor()
    expect(await page.locator('.request').count()).toBe(0)
    await becomes(service, 'payout', id, 'completed')
    await page.close()
  })

  test('a click on a card that has just moved decides nothing', async () => {
    const { shop, clerk, boss } = await team(service)
    const first = await payOut(service, clerk, 25_000)
    const second = await payOut(service, clerk, 26_000)
    const page = await openApprovals(boss)
    await page.getByRole('button', { name: /^Approuver 26.000/ }).waitFor()
    // The script presses the button of the card that stays as soon as the other card is gone.
    const pressed = page.evaluate<string>(`new Promise((resolve) => {
      const pressAtOnce = () => {
        if (document.querySelectorAll('section.card').length !== 1) return
        const button = document.querySelector('section.card > button')
        button.click()
        resolve(button.innerText)
      }
      new MutationObserver(pressAtOnce).observe(
        document.querySelector('main'), { childList: true, subtree: true })
    })`)
    await approvePayout(service, await makePerson(service, shop.merchantId), first)
    expect(await pressed).toMatch(/Approuver 26.000/)
    await becomes(service, 'payout', first, 'completed')
    await press(page, /Approuver 26.000/)
    await page.getByText(' : approuvé.').waitFor()
    const { rows } = await service.database.owner.query(
      'SELECT member_id FROM approval_verdict WHERE payout_id = $1',
      [second],
    )
    expect(rows).toEqual([{ member_id: boss.memberId }])
    await page.close()
  })

  test('the page that goes to its top after a decision brings no other card under the finger', async () => {
    const { clerk, boss } = await team(service)
    for (const amount of [25_000, 26_000, 27_000]) await payOut(service, clerk, amount)
    const page = await openApprovals(boss)
    // The cards are read again only after the second press: until then nothing but the page moves.
    const pressedTwice = Promise.withResolvers<void>()
    const sent: string[] = []
    await page.route('**/graphql', async (route) => {
      const document = route.request().postData() ?? ''
      if (document.includes('approvePayout')) sent.push(document)
      if (sent.length > 0 && document.includes('ApprovalsQuery')) await pressedTwice.promise
      await route.continue()
    })
    await page.getByRole('button', { name: /^Approuver 27.000/ }).scrollIntoViewIfNeeded()
    const second = page.evaluate<string>(`new Promise((resolve) => addEventListener('scroll', () => {
      if (!document.activeElement.matches('h1')) return
      const button = document.querySelector('section.card > button')
      button.click()
      resolve(button.innerText)
    }))`)
    await page.evaluate(`[...document.querySelectorAll('section.card > button')]
      .find(({ innerText }) => /Approuver 27.000/.test(innerText)).click()`)
    expect(await second).toMatch(/Approuver 25.000/)
    pressedTwice.resolve()
    await page.getByRole('button', { name: /^Approuver 27.000/ }).waitFor({ state: 'detached' })
    expect(sent).toHaveLength(1)
    await page.close()
  })

  test('a request that a colleague decides goes while its rejection is written', async () => {
    const { shop, clerk, boss } = await team(service)
    const id = await payOut(service, clerk, 25_000)
    const page = await openApprovals(boss)
    await press(page, 'Refuser')
    await page.getByLabel('Motif du refus').fill('trop cher')
    await approvePayout(service, await makePerson(service, shop.merchantId), id)
    await page.getByText(/^Versement à .*n’attend plus d’approbation/).waitFor()
    await eventually(async () => expect(await focused(page)).toBe('Approbations'))
    await becomes(service, 'payout', id, 'completed')
    await page.close()
  })

  test('a person withdraws the change of the rules that the person asked for', async () => {
    const { shop, boss } = await team(service)
    await service.rest('PUT', '/settings', { token: boss.token, body: { approval_threshold: 50_000 } })
    const page = await openApprovals(boss)
    await page.getByText('Vous avez fait cette demande').waitFor()
    await press(page, 'Refuser')
    await page.getByLabel('Motif du refus').fill('erreur')
    await press(page, 'Refuser la demande')
    await page.getByText('Les règles restent comme elles sont.').waitFor()
    const { rows } = await service.database.owner.query(
      'SELECT approval_threshold::int FROM merchant WHERE id = $1',
      [shop.merchantId],
    )
    expect(rows).toEqual([{ approval_threshold: 2_000 }])
    await page.close()
  })

  test('a refund and a change of the rules are decided in the same list', async () => {
    const { shop, clerk, boss } = await team(service)
    const body = { amount: 9_000, customer_phone: customer('00'), payment_method: 'OperatorA' }
    const paid = await service.rest('POST', '/pay', { token: shop.token, body })
    const paymentId = Number(paid.body.data.transaction_id)
    await becomes(service, 'transaction', paymentId, 'success')
    const refund = `mutation { refundTransaction(id: "${paymentId}") { ... on PaymentInitiation {
      transaction { databaseId } } } }`
    const refunded = (await service.graphql(refund, {}, clerk.token)).body['data'].refundTransaction
    const page = await openApprovals(boss)
    await page.getByRole('heading', { name: 'Remboursement au' }).waitFor()
    await press(page, /Approuver 9.000/)
    await saysNothingWaits(page)
    await becomes(service, 'transaction', refunded.transaction.databaseId, 'success')
    const owner = await makePerson(service, shop.merchantId)
    const looser = { approval_threshold: 50_000, approvals_cover_deposits: false }
    await service.rest('PUT', '/settings', { token: owner.token, body: looser })
    await page.getByRole('heading', { name: 'Changement des règles' }).waitFor()
    expect(await cardOf(page)).toMatch(
      /Les dépôts et remboursements ne demandent plus d’approbation\..*à partir de 50 000 F CFA/,
    )
    await press(page, 'Approuver le changement')
    await saysNothingWaits(page)
    const { rows } = await service.database.owner.query(
      'SELECT approval_threshold::int FROM merchant WHERE id = $1',
      [shop.merchantId],
    )
    expect(rows).toEqual([{ approval_threshold: 50_000 }])
    await page.close()
  })
})

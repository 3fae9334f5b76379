import type { Page } from 'playwright-core'
import { afterAll, describe, beforeAll, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import { customer } from '../kit/fixture.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { proveLedger } from '../kit/ledger.ts'
import { makePerson } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The first screen, while money moves.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

const pay = async (
  shop: TestMerchant,
  amount: number,
  scenario = '00',
  reference?: string,
  parameter = '00',
) => {
  const body = {
    amount,
    customer_phone: customer(scenario, parameter),
    payment_method: 'OperatorA',
    reference,
  }
  const answer = await service.rest('POST', '/pay', { token: shop.token, body })
  expect(answer.status).toBe(202)
}
/** The lines of the last payments, as a person reads them. */
const rowsOf = async (page: Page) => {
  const texts = await page.locator('.wide .rows > li').allInnerTexts()
  return texts.map((text) => text.replaceAll(/\s+/g, ' '))
}
const cardOf = async (page: Page, heading: string) =>
  (
    await page.locator('section', { has: page.getByRole('heading', { name: heading }) }).innerText()
  ).replaceAll(/\s+/g, ' ')

describe.skipIf(cannotLook)('the first screen', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    const problems = await proveLedger(service.database.database.pool)
    await browser.close()
    await service.close()
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
  })

  test('an empty account says what to do; a payment of a second client then arrives by itself', async () => {
    const shop = await service.merchant('Épicerie')
    const page = await signedIn(browser, service, await makePerson(service, shop.merchantId))
    await page.getByText('Rien encore : le premier paiement apparaîtra ici tout seul.').waitFor()
    expect(await cardOf(page, 'Disponible')).toContain('0 F CFA')
    await page.getByText('en direct').waitFor()
    await pay(shop, 12_500)
    await eventually(async () =>
      expect(await rowsOf(page)).toEqual([expect.stringMatching(/12 500 F CFA réussi$/)]),
    )
    await eventually(async () =>
      expect(await cardOf(page, 'Disponible')).toContain('Disponible 12 500 F CFA'),
    )
    expect(await cardOf(page, 'Disponible')).toContain('Encaissé aujourd’hui 12 500 F CFA')
    expect(await cardOf(page, 'Encaissé en 30 jours')).toContain('100 % des paiements réussissent')
    await page.close()
  })

  test('a payment that failed says why, in the language of the person', async () => {
    const shop = await service.merchant('Épicerie')
    const page = await signedIn(browser, service, await makePerson(service, shop.merchantId))
    await page.getByText('en direct').waitFor()
    await pay(shop, 7_000, '02')
    await eventually(async () =>
      expect(await rowsOf(page)).toEqual([
        expect.stringMatching(/Le solde du compte est insuffisant\. 7 000 F CFA échoué$/),
      ]),
    )
    await page.locator('.menu > summary').click()
    await page.getByRole('button', { name: 'English' }).click()
    await page.getByRole('heading', { name: 'Last payments' }).waitFor()
    expect(await page.locator('html').getAttribute('lang')).toBe('en')
    await eventually(async () =>
      expect(await rowsOf(page)).toEqual([
        expect.stringMatching(/does not hold enough money\. F CFA 7,000 failed$/),
      ]),
    )
    await page.close()
  })

  test('payments of the time without a network are shown afterwards, each once', async () => {
    const shop = await service.merchant('Épicerie')
    const page = await signedIn(browser, service, await makePerson(service, shop.merchantId))
    await page.getByText('en direct').waitFor()
    await pay(shop, 1_000)
    await eventually(async () => expect(await rowsOf(page)).toHaveLength(1))
    await browser.context.setOffline(true)
    await page.getByText('hors ligne').waitFor()
    await pay(shop, 2_000)
    await pay(shop, 3_000)
    await browser.context.setOffline(false)
    await eventually(async () =>
      expect(await rowsOf(page)).toEqual([
        expect.stringMatching(/3 000 F CFA réussi$/),
        expect.stringMatching(/2 000 F CFA réussi$/),
        expect.stringMatching(/1 000 F CFA réussi$/),
      ]),
    )
    await page.getByText('en direct').waitFor()
    await page.close()
  })

  test('a payout that waits for approval is named, with its amount', async () => {
    const shop = await service.merchant('Épicerie')
    const { token } = await makePerson(service, shop.merchantId)
    const { owner } = service.database
    await owner.query('UPDATE merchant SET payouts_require_approval = true WHERE id = $1', [shop.merchantId])
    const page = await signedIn(
      browser,
      service,
      await makePerson(service, shop.merchantId, { role: 'viewer' }),
    )
    expect(await page.getByRole('heading', { name: /attend/ }).count()).toBe(0)
    await fund(shop, 50_000)
    const body = { amount: 9_000, payment_method: 'OperatorA', destination_phone: '+22370000077' }
    expect((await service.rest('POST', '/payouts', { token, body })).status).toBe(201)
    await page.reload()
    await page.getByRole('heading', { name: 'Une demande attend une approbation' }).waitFor()
    expect(await cardOf(page, 'Une demande attend une approbation')).toContain(
      'Versement à 70 00 00 77 9 000 F CFA',
    )
    expect(await cardOf(page, 'Disponible')).toContain(
      'Mis de côté pour des versements en cours : 9 000 F CFA',
    )
    await page.close()
  })

  test('money that an operator took back is not counted as received', async () => {
    const shop = await service.merchant('Épicerie')
    const page = await signedIn(browser, service, await makePerson(service, shop.merchantId))
    await page.getByText('en direct').waitFor()
    await pay(shop, 5_000)
    await pay(shop, 50_000, '40', undefined, '01')
    await service.app.services.sandbox?.advanceClock(2 * 60_000)
    await eventually(async () =>
      expect(await rowsOf(page)).toEqual([
        expect.stringMatching(/50 000 F CFA rendu$/),
        expect.stringMatching(/5 000 F CFA réussi$/),
      ]),
    )
    await eventually(async () =>
      expect(await cardOf(page, 'Disponible')).toContain('Encaissé aujourd’hui 5 000 F CFA'),
    )
    expect(await cardOf(page, 'Encaissé en 30 jours')).toContain('Encaissé en 30 jours 5 000 F CFA')
    await page.close()
  })

  test('a payout of a second client is seen at once', async () => {
    const shop = await service.merchant('Épicerie')
    await fundMerchant(service.app.services, shop.merchantId, { amount: 50_000 })
    const page = await signedIn(browser, service, await makePerson(service, shop.merchantId))
    await page.getByText('en direct').waitFor()
    const body = { amount: 9_000, payment_method: 'OperatorA', destination_phone: customer('00') }
    expect((await service.rest('POST', '/payouts', { token: shop.token, body })).status).toBe(201)
    await eventually(async () =>
      expect(await cardOf(page, 'Disponible')).toMatch(/41 000 F CFA .*Versé aujourd’hui 9 000 F CFA/),
    )
    await page.close()
  })

  test('a part that the service could not read is not shown as empty', async () => {
    const shop = await service.merchant('Épicerie')
    const person = await makePerson(service, shop.merchantId)
    const page = await signedIn(browser, service, person)
    await page.route('**/graphql', async (route) => {
      const response = await route.fetch()
      const answer = await response.json()
      const data = {
        ...answer.data,
        ...('operators' in answer.data && { operators: null, transactions: null }),
      }
      const errors = [{ message: 'busy', path: ['operators'], extensions: { code: 'OVERLOADED' } }]
      await route.fulfill({ response, json: { ...answer, data, errors } })
    })
    await page.reload()
    await eventually(async () =>
      expect(await cardOf(page, 'Opérateurs')).toContain('Indisponible pour le moment'),
    )
    expect(await cardOf(page, 'Derniers paiements')).toContain('Indisponible pour le moment')
    await page.close()
  })

  test('figures stay while the service cannot be read, and then go on by themselves', async () => {
    const shop = await service.merchant('Épicerie')
    const page = await signedIn(browser, service, await makePerson(service, shop.merchantId))
    await page.getByText('en direct').waitFor()
    await pay(shop, 1_000)
    await eventually(async () => expect(await rowsOf(page)).toHaveLength(1))
    await page.route('**/graphql', (route) => route.abort())
    await pay(shop, 2_000)
    await page.getByText('ces chiffres datent d’un moment').waitFor()
    expect(await cardOf(page, 'Disponible')).toMatch(/Disponible [13] 000 F CFA/)
    await page.unroute('**/graphql')
    await eventually(async () => expect(await rowsOf(page)).toHaveLength(2))
    expect(await page.getByText('ces chiffres datent d’un moment').count()).toBe(0)
    await page.close()
  })

  test('names and references with code in them are shown as text', async () => {
    const attack = `<img src=x onerror="document.title='broken'"><script>document.title='broken'</script>`
    const shop = await service.merchant(`Chez ${attack}`)
    const person = await makePerson(service, shop.merchantId, { name: `Awa ${attack}` })
    const page = await signedIn(browser, service, person)
    await page.getByText('en direct').waitFor()
    await pay(shop, 1_000, '00', `<b>${attack.slice(0, 40)}</b>`)
    await eventually(async () =>
      expect(await rowsOf(page)).toEqual([expect.stringContaining('<b><img src=x')]),
    )
    expect(await page.locator('header').innerText()).toContain(`Chez ${attack}`)
    expect(await page.title()).toBe(`Accueil · Chez ${attack}`)
    expect(await page.locator('main img, main b, header img, main script').count()).toBe(0)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
    await page.close()
  })
})

async function fund(shop: TestMerchant, amount: number): Promise<void> {
  await fundMerchant(service.app.services, shop.merchantId, { amount })
}

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { customer } from '../kit/fixture.ts'
import { proveLedger } from '../kit/ledger.ts'
import { expectAccessible, expectGoodLook, photograph } from '../kit/look.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import {
  addLines,
  addMoney,
  ledgerOf,
  linesOn,
  monthBefore,
  moveMoney,
  operationsOn,
  sumsOn,
} from '../kit/statements.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The statement of a month: its figures and lines are those of the ledger.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

async function shopOf(): Promise<{ shop: TestMerchant; owner: PasswordMember }> {
  const shop = await service.merchant('Boulangerie du Sahel')
  return { shop, owner: await makePerson(service, shop.merchantId) }
}
const openPage = (person: PasswordMember, query = '') =>
  signedIn(browser, service, person, `/statement${query}`)
const nameOf = (month: string) =>
  new Intl.DateTimeFormat('fr', { month: 'long', year: 'numeric', timeZone: 'UTC' }).format(
    new Date(`${month}-01`),
  )

describe.skipIf(cannotLook)('the statement', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    const problems = await proveLedger(service.database.database.pool)
    await browser.close()
    await service.close()
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
  })

  test('figures and running balances are those of the ledger, and lines lead to payments', async () => {
    const { shop, owner } = await shopOf()
    await addMoney(service, shop, `${monthBefore(1)}-10T12:00:00Z`, [100_000])
    const { payment, batch } = await moveMoney(service, shop)
    const page = await openPage(owner)
    expect(await sumsOn(page)).toBe(
      'Solde au début 100 000 F CFA + Entrées 25 000 F CFA − Sorties 15 000 F CFA ' +
        '= Solde à ce moment 110 000 F CFA 100 000 + 25 000 − 15 000 = 110 000',
    )
    const [, ...ofThisMonth] = await ledgerOf(service, shop)
    expect(ofThisMonth).toHaveLength(4)
    expect(await linesOn(page)).toEqual(ofThisMonth)
    expect(await operationsOn(page)).toEqual([
      expect.stringMatching(/^Paiement reçu 70 00 .* · vente-7$/),
      expect.stringMatching(/^Remboursement 70 00 /),
      expect.stringMatching(/^Versement 70 00 .* · loyer$/),
      expect.stringMatching(/^Paie Awa Traoré · 70 00 .* · Salaires$/),
    ])
    await page.getByText('ne change pas le solde : ces lignes ne sont pas ici').waitFor()
    const href = (name: string) => page.getByRole('link', { name, exact: true }).getAttribute('href')
    expect([await href('Paiement reçu'), await href('Paie')]).toEqual([
      `/app/payments/${payment}`,
      `/app/payroll/${batch}`,
    ])
    const { body } = await service.rest('GET', '/balance', { token: shop.token })
    expect((await linesOn(page)).at(-1)?.[1]).toBe(body.data.available + body.data.reserved)
    await expectGoodLook(page, 'app/statement-lines')
    await page.evaluate(`localStorage.setItem('language', 'en')`)
    await page.reload()
    await page.getByText('Balance at this moment').waitFor()
    expect((await operationsOn(page)).map((text) => text.replace(/ (70|Awa) .*/, ''))).toEqual([
      'Payment received',
      'Refund',
      'Payout',
      'Payroll',
    ])
    expect(await linesOn(page)).toEqual(ofThisMonth)
    await expectAccessible(page)
    await photograph(page, 'app/en-statement-lines')
    await page.close()
  })

  test('months lead to each other, stand in the address, and add up from one to the next', async () => {
    const { shop, owner } = await shopOf()
    await addMoney(service, shop, `${monthBefore(1)}-01T00:00:00Z`, [40_000])
    await addMoney(service, shop, `${monthBefore(1)}-10T12:00:00Z`, [60_000])
    const page = await openPage(owner, '?month=2999-01')
    await page.getByRole('heading', { name: `Relevé : ${nameOf(monthBefore(0))}`, exact: true }).waitFor()
    expect(await page.getByRole('link', { name: 'Mois suivant' }).count()).toBe(0)
    await page.getByText('Aucun mouvement d’argent ce mois-ci.').waitFor()
    expect(await sumsOn(page)).toContain('Solde au début 100 000 F CFA')
    await page.getByRole('link', { name: 'Mois précédent' }).click()
    await page.getByRole('heading', { name: `Relevé : ${nameOf(monthBefore(1))}`, exact: true }).waitFor()
    expect(new URL(page.url()).search).toBe(`?month=${monthBefore(1)}`)
    await page.getByText('Solde à la fin').waitFor()
    expect(await sumsOn(page)).toContain(
      'Solde au début 0 F CFA + Entrées 100 000 F CFA − Sorties 0 F CFA = Solde à la fin 100 000 F CFA',
    )
    await page.getByLabel('Mois', { exact: true }).selectOption(monthBefore(2))
    await page.getByText('Aucun mouvement d’argent ce mois-ci.').waitFor()
    expect(await sumsOn(page)).toContain('= Solde à la fin 0 F CFA')
    await page.goBack()
    await page.getByRole('heading', { name: `Relevé : ${nameOf(monthBefore(1))}`, exact: true }).waitFor()
    await page.locator('.lines').waitFor()
    expect(await linesOn(page)).toEqual(await ledgerOf(service, shop))
    await page.close()
  })

  test('months begin at midnight in the time zone of the account', async () => {
    const { shop, owner } = await shopOf()
    await service.database.owner.query(`UPDATE merchant SET time_zone = 'America/New_York' WHERE id = $1`, [
      shop.merchantId,
    ])
    await addMoney(service, shop, '2026-02-01T04:59:59.999Z', [1_000])
    await addMoney(service, shop, '2026-02-01T05:00:00.000Z', [2_000])
    await addMoney(service, shop, '2026-04-01T03:59:59.999Z', [4_000])
    await addMoney(service, shop, '2026-04-01T04:00:00.000Z', [8_000])
    const page = await openPage(owner, '?month=2026-02')
    expect(await sumsOn(page)).toContain('Solde au début 1 000 F CFA + Entrées 2 000 F CFA')
    await page.goto(`${service.url}/app/statement?month=2026-03`)
    expect(await sumsOn(page)).toContain('Solde au début 3 000 F CFA + Entrées 4 000 F CFA')
    expect(await page.locator('.time').innerText()).toMatch(/31 mars,? .*23:59/)
    await page.close()
  })

  test('more lines follow in order without a gap, also those that were committed late', async () => {
    const { shop, owner } = await shopOf()
    await addLines(service, shop, 250)
    const page = await openPage(owner, `?month=${monthBefore(1)}`)
    const more = page.getByRole('button', { name: 'Afficher la suite' })
    await more.waitFor()
    expect(await linesOn(page)).toEqual((await ledgerOf(service, shop)).slice(0, 100))
    await addMoney(service, shop, `${monthBefore(1)}-05T10:00:11Z`, [7])
    await addMoney(service, shop, `${monthBefore(1)}-05T10:00:16Z`, [9])
    await more.click()
    await eventually(async () =>
      expect(await linesOn(page)).toEqual((await ledgerOf(service, shop)).slice(0, 200)),
    )
    // The last page is read while one line more comes before it.
    await addMoney(service, shop, `${monthBefore(1)}-05T10:00:12Z`, [11])
    await more.click()
    await eventually(async () => expect(await linesOn(page)).toEqual(await ledgerOf(service, shop)))
    expect(await more.count()).toBe(0)
    await page.close()
  })

  test('the running month follows the money, and keeps the lines that were opened', async () => {
    const { shop, owner } = await shopOf()
    const amounts = Array.from({ length: 150 }, (_, index) => 1_000 + index)
    await addMoney(service, shop, `${monthBefore(0)}-01T00:00:00Z`, amounts)
    const page = await openPage(owner)
    const more = page.getByRole('button', { name: 'Afficher la suite' })
    await more.waitFor()
    const pay = async (amount: number) => {
      const body = { amount, customer_phone: customer('00'), payment_method: 'OperatorA' }
      await service.rest('POST', '/pay', { token: shop.token, body })
    }
    await pay(12_500)
    await eventually(async () => expect(await sumsOn(page)).toContain('Entrées 173 675 F CFA'))
    expect(await linesOn(page)).toHaveLength(100)
    await more.click()
    await eventually(async () => expect(await linesOn(page)).toHaveLength(151))
    await pay(2_500)
    await eventually(async () => expect(await linesOn(page)).toHaveLength(152))
    expect(await linesOn(page)).toEqual(await ledgerOf(service, shop))
    expect(await sumsOn(page)).toContain('= Solde à ce moment 176 175 F CFA')
    await page.close()
  })
})

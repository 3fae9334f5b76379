import { readFile } from 'node:fs/promises'
import type { Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { expectAccessible, expectGoodLook, keep, photograph } from '../kit/look.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import {
  addLines,
  addMoney,
  linesOn,
  monthBefore,
  moveMoney,
  operationsOn,
  plain,
  sumsOn,
} from '../kit/statements.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The statement of a month on paper and as a file, and what stands beside its figures. Some of these tests
// write entries without their payments, so the ledger is not proven at the end.

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
/** Notes the lines in the page at each call of the printer. */
const stubPrinter = `window.papers = []
  window.print = () => window.papers.push(document.querySelectorAll('.lines tbody tr').length)`

describe.skipIf(cannotLook)('the statement on paper and as a file', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('the print has all lines before the dialog opens, and nothing of the dashboard', async () => {
    const { shop, owner } = await shopOf()
    await addLines(service, shop, 250)
    const page = await openPage(owner, `?month=${monthBefore(1)}`)
    await page.getByRole('button', { name: 'Imprimer' }).waitFor()
    await page.evaluate(stubPrinter)
    let go = () => {}
    const held = new Promise<void>((resolve) => (go = resolve))
    let reads = 0
    await page.route('**/graphql', async (route) => {
      if (route.request().postData()?.includes('StatementQuery') && (reads += 1) === 2) await held
      await route.continue()
    })
    await page.getByRole('button', { name: 'Imprimer' }).click()
    await page.getByText('200 lignes sur 250…').waitFor()
    expect(await page.evaluate('window.papers')).toEqual([])
    go()
    await eventually(async () => expect(await page.evaluate('window.papers')).toEqual([250]))
    await page.emulateMedia({ media: 'print' })
    const shown = plain(await page.locator('body').innerText())
    expect(shown).toMatch(
      /^Relevé : \S+ \d{4} Boulangerie du Sahel · marchand \d+ Fait le \d+ \S+ \d{4} à \d\d:\d\d Solde/,
    )
    expect(shown).not.toMatch(/Imprimer|Mois|CSV\)|Accueil|Afficher/)
    const pdf = await page.pdf({ preferCSSPageSize: true })
    expect(pdf.length).toBeGreaterThan(10_000)
    await photograph(page, 'app/statement-paper')
    await keep('app/statement.pdf', () => Promise.resolve(pdf))
    await page.close()
  })

  test('a page of lines that are left out is passed over', async () => {
    const { shop, owner } = await shopOf()
    const day = `${monthBefore(1)}-05T10:00`
    await addMoney(service, shop, `${day}:00Z`, [90_000])
    await service.database.owner.query(
      `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
       SELECT $1, 'payout:' || 900000000 + n / 2,
         CASE n % 2 WHEN 0 THEN 'reserve' ELSE 'void' END::ledger_step,
         CASE n % 2 WHEN 0 THEN 'available' ELSE 'reserved' END::ledger_account,
         CASE n % 2 WHEN 0 THEN 'reserved' ELSE 'available' END::ledger_account, 1000, $2
       FROM generate_series(0, 239) AS n`,
      [shop.merchantId, `${day}:10Z`],
    )
    await addMoney(service, shop, `${day}:20Z`, [5_000])
    const page = await openPage(owner, `?month=${monthBefore(1)}`)
    await page.getByRole('button', { name: 'Afficher la suite' }).click()
    await eventually(async () =>
      expect(await linesOn(page)).toEqual([
        [90_000, 90_000],
        [5_000, 95_000],
      ]),
    )
    await page.close()
  })

  test('a month that is too long for paper says so, and points to the file', async () => {
    const { shop, owner } = await shopOf()
    const amounts = Array.from({ length: 2_001 }, (_, index) => 1_000 + index)
    await addMoney(service, shop, `${monthBefore(1)}-05T10:00:00Z`, amounts)
    const page = await openPage(owner, `?month=${monthBefore(1)}`)
    await page.getByText(/Ce mois a 2.001 lignes.: c’est trop long pour le papier\./).waitFor()
    await page.evaluate(stubPrinter)
    const button = page.getByRole('button', { name: 'Imprimer' })
    expect(await button.getAttribute('aria-disabled')).toBe('true')
    await button.press('Enter')
    await page.getByRole('button', { name: 'Afficher la suite' }).click()
    await eventually(async () => expect(await linesOn(page)).toHaveLength(200))
    expect(await page.evaluate('window.papers')).toEqual([])
    await page.close()
  })

  test('the file has the same closing balance, and the lines that the page leaves out', async () => {
    const { shop, owner } = await shopOf()
    await addMoney(service, shop, `${monthBefore(1)}-10T12:00:00Z`, [100_000])
    await moveMoney(service, shop)
    const page = await openPage(owner)
    await page.getByText('Solde à ce moment').waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Télécharger (CSV)' }).click(),
    ])
    const lines = (await readFile(await download.path(), 'utf8')).replace('\ufeff', '').trim().split('\r\n')
    const [names = [], ...rows] = lines.map((line) => line.split(','))
    const cell = (row: string[] | undefined, name: string) => row?.[names.indexOf(name)]
    expect(cell(rows.at(0), 'available')).toBe('100000')
    const closing = rows.at(-1)
    expect([cell(closing, 'step'), cell(closing, 'available'), cell(closing, 'reserved')]).toEqual([
      'closing',
      '110000',
      '0',
    ])
    expect(rows.map((row) => cell(row, 'step'))).toContain('reserve')
    expect(await sumsOn(page)).toContain('= Solde à ce moment 110 000 F CFA')
    await page.close()
  })

  test('a viewer reads it; a member without the right to see the balance is told so', async () => {
    const { shop } = await shopOf()
    await addMoney(service, shop, `${monthBefore(1)}-10T12:00:00Z`, [100_000])
    const viewer = await makePerson(service, shop.merchantId, { role: 'viewer' })
    const page = await openPage(viewer)
    expect(await sumsOn(page)).toContain('100 000 F CFA')
    const refuse = (route: Route) => {
      if (!route.request().postData()?.includes('StatementQuery')) return route.continue()
      const errors = [{ message: 'No.', path: ['statement'], extensions: { code: 'FORBIDDEN' } }]
      return route.fulfill({ json: { data: { asOfSequence: 1, statement: null }, errors } })
    }
    await page.route('**/graphql', refuse)
    await page.getByRole('link', { name: 'Mois précédent' }).click()
    await page.getByText('Votre rôle ne permet pas de voir cette page.').waitFor()
    expect(await page.locator('.sums').count()).toBe(0)
    await expectAccessible(page)
    await page.close()
  })

  test('money that is set aside and money that is owed stand beside the figures', async () => {
    const { shop, owner } = await shopOf()
    const { owner: database } = service.database
    await addMoney(service, shop, `${monthBefore(1)}-10T12:00:00Z`, [100_000])
    const write = `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7)`
    const at = `${monthBefore(1)}-11T12:00:00Z`
    const reserve = ['payout:910000001', 'reserve', 'available', 'reserved', 30_000, at]
    await database.query(write, [shop.merchantId, ...reserve])
    const owed = ['transaction:900000001', 'shortfall', 'suspense', 'clearing_operator_a', 2_001, at]
    await database.query(write, [shop.merchantId, ...owed])
    const page = await openPage(owner, `?month=${monthBefore(1)}`)
    expect(await sumsOn(page)).toBe(
      'Solde au début 0 F CFA + Entrées 100 000 F CFA − Sorties 0 F CFA = Solde à la fin 100 000 F CFA ' +
        '0 + 100 000 − 0 = 100 000 Dont mis de côté pour des versements en cours 30 000 F CFA ' +
        'Repris par un opérateur et encore dû 2 001 F CFA',
    )
    expect(await operationsOn(page)).toEqual([
      'Argent d’essai ajouté',
      'Paiement repris par l’opérateur : reste dû somme due : +2 001 F CFA',
    ])
    await expectGoodLook(page, 'app/statement-owed')
    await page.close()
  })
})

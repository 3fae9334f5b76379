import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { expectGoodLook } from '../kit/look.ts'
import { reverseMany } from '../kit/money.ts'
import { makePerson } from '../kit/people.ts'
import { linesOn, moveMoney, operationsOn, sumsOn } from '../kit/statements.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The statement against sums that the test itself makes from the table of entries. Entries are written
// without their payments, so the ledger is not proven at the end.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

/**
 * Months of everything, in the last one a debt. Each entry has its moment in the time zone of the merchant,
 * its origin, its step, its sides and its amount.
 */
const entries = [
  ['2026-02-28 23:59:59.999', 'transaction:1', 'credit', 'clearing_operator_a', 'available', 50_000],
  ['2026-03-01 00:00:00', 'transaction:2', 'credit', 'clearing_operator_a', 'available', 20_000],
  ['2026-03-03 09:00:00', 'transaction:3', 'reserve', 'available', 'reserved', 3_000],
  ['2026-03-03 09:00:00', 'transaction:3', 'post', 'reserved', 'clearing_operator_a', 3_000],
  ['2026-03-08 01:30:00', 'transaction:4', 'reserve', 'available', 'reserved', 1_100],
  ['2026-03-08 03:30:00', 'transaction:4', 'post', 'reserved', 'clearing_operator_a', 1_100],
  ['2026-03-09 10:00:00', 'payout:1', 'reserve', 'available', 'reserved', 7_000],
  ['2026-03-09 10:00:05', 'payout:1', 'post', 'reserved', 'clearing_operator_b', 7_000],
  ['2026-03-10 10:00:00', 'payout:2', 'reserve', 'available', 'reserved', 9_000],
  ['2026-03-10 10:00:05', 'payout:2', 'void', 'reserved', 'available', 9_000],
  ['2026-03-11 10:00:00', 'batch:1', 'reserve', 'available', 'reserved', 10_000],
  ['2026-03-11 10:00:01', 'recipient:1', 'post', 'reserved', 'clearing_operator_a', 6_000],
  ['2026-03-11 10:00:01', 'recipient:2', 'void', 'reserved', 'available', 4_000],
  ['2026-03-12 10:00:00', 'payout:1', 'reverse', 'clearing_operator_b', 'available', 7_000],
  ['2026-03-14 10:00:00', 'transaction:5', 'credit', 'clearing_operator_a', 'available', 30_000],
  ['2026-03-15 10:00:00', 'transaction:5', 'excess', 'clearing_operator_a', 'unallocated', 700],
  ['2026-03-16 10:00:00', 'transaction:5', 'excess_credit', 'unallocated', 'available', 700],
  ['2026-03-17 10:00:00', 'payout:3', 'reserve', 'available', 'reserved', 5_000],
  ['2026-03-17 10:00:01', 'payout:3', 'post', 'reserved', 'clearing_operator_a', 4_000],
  ['2026-03-17 10:00:01', 'payout:3', 'withhold', 'reserved', 'unallocated', 1_000],
  ['2026-03-18 10:00:01', 'payout:3', 'withheld_credit', 'unallocated', 'available', 1_000],
  ['2026-03-31 22:00:00', 'payout:4', 'reserve', 'available', 'reserved', 8_000],
  ['2026-03-31 23:59:59.999', 'transaction:6', 'credit', 'clearing_operator_a', 'available', 12_345],
  ['2026-04-01 00:00:00', 'transaction:7', 'credit', 'clearing_operator_a', 'available', 777],
  ['2026-04-01 08:00:00', 'payout:4', 'post', 'reserved', 'clearing_operator_a', 8_000],
  ['2026-04-02 08:00:00', 'payout:5', 'reserve', 'available', 'reserved', 50_000],
  ['2026-04-02 08:00:00', 'payout:5', 'post', 'reserved', 'clearing_operator_a', 50_000],
  ['2026-04-03 08:00:00', 'transaction:1', 'reverse', 'available', 'clearing_operator_a', 41_722],
  ['2026-04-03 08:00:00', 'transaction:1', 'shortfall', 'suspense', 'clearing_operator_a', 8_278],
] as const

let written = 0
async function writeEntries({ merchantId }: TestMerchant, zone: string): Promise<void> {
  const { owner } = service.database
  await owner.query('UPDATE merchant SET time_zone = $2 WHERE id = $1', [merchantId, zone])
  // Origins are unique in the whole table.
  written += 1
  for (const [at, origin, step, debit, credit, amount] of entries)
    await owner.query(
      `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7::timestamp AT TIME ZONE $8)`,
      [merchantId, origin.replace(':', `:${written}00000000`), step, debit, credit, amount, at, zone],
    )
}

/** The figures of a month from the table of entries. */
async function booksOf({ merchantId }: TestMerchant, zone: string, month: string) {
  const { rows } = await service.database.owner.query<Record<string, string>>(
    `WITH change AS (
       SELECT created_at AT TIME ZONE $2 AS at,
         CASE WHEN credit IN ('available', 'reserved') THEN amount ELSE 0 END
           - CASE WHEN debit IN ('available', 'reserved') THEN amount ELSE 0 END AS sum,
         CASE WHEN credit = 'reserved' THEN amount
           WHEN debit = 'reserved' THEN -amount ELSE 0 END AS reserved,
         CASE WHEN debit = 'suspense' THEN amount WHEN credit = 'suspense' THEN -amount ELSE 0 END AS owed
       FROM ledger_entry WHERE merchant_id = $1)
     SELECT coalesce(sum(sum) FILTER (WHERE to_char(at, 'YYYY-MM') < $3), 0) AS opening,
       coalesce(sum(sum) FILTER (WHERE to_char(at, 'YYYY-MM') = $3 AND sum > 0), 0) AS income,
       coalesce(-sum(sum) FILTER (WHERE to_char(at, 'YYYY-MM') = $3 AND sum < 0), 0) AS spent,
       coalesce(sum(sum) FILTER (WHERE to_char(at, 'YYYY-MM') <= $3), 0) AS closing,
       coalesce(sum(reserved) FILTER (WHERE to_char(at, 'YYYY-MM') <= $3), 0) AS reserved,
       coalesce(sum(owed) FILTER (WHERE to_char(at, 'YYYY-MM') <= $3), 0) AS owed
     FROM change`,
    [merchantId, zone, month],
  )
  return Object.fromEntries(Object.entries(rows[0] ?? {}).map(([name, sum]) => [name, Number(sum)]))
}

/** The figures of the month on the page. */
async function figuresOn(page: Page) {
  await page.locator('.sums').waitFor()
  const numberOf = (text = '0') => Number(text.replace('\u2212', '-').replaceAll(/[^\d-]/g, ''))
  const [opening, income, spent, closing] = await page.locator('.sums dd').allInnerTexts()
  const extra = async (name: string) =>
    numberOf((await page.locator('.extra', { hasText: name }).locator('strong').allInnerTexts())[0])
  return {
    opening: numberOf(opening),
    income: numberOf(income),
    spent: numberOf(spent),
    closing: numberOf(closing),
    reserved: await extra('mis de côté'),
    owed: await extra('encore dû'),
  }
}

/** The balances of the opening and of the closing row of the file, and the sum of its changes. */
async function fileOf(page: Page) {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Télécharger (CSV)' }).click(),
  ])
  const text = (await readFile(await download.path(), 'utf8')).replace('\ufeff', '').trim()
  const [names = [], ...rows] = text.split('\r\n').map((line) => line.split(','))
  const sum = (row: string[] | undefined, ...of: string[]) =>
    of.reduce((total, name) => total + Number(row?.[names.indexOf(name)]), 0)
  const changes = rows.slice(1, -1).map((row) => sum(row, 'available_change', 'reserved_change'))
  return {
    opening: sum(rows[0], 'available', 'reserved'),
    closing: sum(rows.at(-1), 'available', 'reserved'),
    owed: sum(rows.at(-1), 'receivable'),
    changed: changes.reduce((total, each) => total + each, 0),
  }
}

describe.skipIf(cannotLook)('the statement against the books', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  // It is the first: payments out halt when the service finds the entries that the others write.
  test('a payment taken back after its money was spent is owed in part, as the books say', async () => {
    const shop = await service.merchant('Boulangerie du Sahel')
    const { payment } = await moveMoney(service, shop)
    await reverseMany(service.database.database.pool, [BigInt(payment)])
    const owner = await makePerson(service, shop.merchantId)
    const page = await signedIn(browser, service, owner, '/statement')
    const month = new Date().toISOString().slice(0, 7)
    await eventually(async () =>
      expect(await figuresOn(page)).toEqual(await booksOf(shop, 'Africa/Bamako', month)),
    )
    const { closing = 0, owed = 0 } = await booksOf(shop, 'Africa/Bamako', month)
    expect(closing).toBe(0)
    expect(owed).toBeGreaterThan(0)
    expect(await sumsOn(page)).toContain('Repris par un opérateur et encore dû')
    expect((await operationsOn(page)).slice(-2)).toEqual([
      expect.stringMatching(/^Paiement repris par l’opérateur 70 00 /),
      expect.stringMatching(/^Paiement repris par l’opérateur : reste dû 70 00 .* somme due : \+/),
    ])
    await page.close()
  })

  test.for(['Asia/Tokyo', 'America/New_York', 'Africa/Bamako'])(
    'months of everything add up, from one to the next, on the screen and in the file, in %s',
    async (zone) => {
      const shop = await service.merchant('Boulangerie du Sahel')
      await writeEntries(shop, zone)
      const owner = await makePerson(service, shop.merchantId)
      const page = await signedIn(browser, service, owner, '/statement?month=2026-01')
      let before = await figuresOn(page)
      expect(before).toEqual({ opening: 0, income: 0, spent: 0, closing: 0, reserved: 0, owed: 0 })
      for (const month of ['2026-02', '2026-03', '2026-04']) {
        await page.goto(`${service.url}/app/statement?month=${month}`)
        const figures = await figuresOn(page)
        expect(figures).toEqual(await booksOf(shop, zone, month))
        expect(figures.opening).toBe(before.closing)
        expect(figures.opening + figures.income - figures.spent).toBe(figures.closing)
        let balance = figures.opening
        const lines = await linesOn(page)
        for (const [change, after] of lines) expect(after).toBe((balance += change))
        expect(balance).toBe(figures.closing)
        const { opening, closing, owed } = figures
        expect(await fileOf(page)).toEqual({ opening, closing, owed, changed: closing - opening })
        before = figures
      }
      await page.goto(`${service.url}/app/statement?month=2026-03`)
      expect(await figuresOn(page)).toMatchObject({ opening: 50_000, reserved: 8_000, closing: 98_945 })
      expect(await operationsOn(page)).toHaveLength(12)
      await expectGoodLook(page, `app/statement-everything-${zone.replace('/', '-')}`)
      await page.close()
    },
  )
})

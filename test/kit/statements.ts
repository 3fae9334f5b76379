import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import type { TestApp, TestMerchant } from './app.ts'
import { eventually } from './eventually.ts'
import { customer } from './fixture.ts'

// The statement of a month as the tests make it, read it from the ledger, and read it from the page.

export const plain = (text: string) => text.replaceAll(/\s+/g, ' ').trim()

/** The month that is so many months before the running one, in Mali: `2026-11`. */
export function monthBefore(months: number): string {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months)).toISOString().slice(0, 7)
}
/** Writes entries that add money at a moment, by the table alone. */
export async function addMoney(
  service: TestApp,
  { merchantId }: TestMerchant,
  at: string,
  amounts: readonly number[],
): Promise<void> {
  await service.database.owner.query(
    `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
     SELECT $1, 'funding:' || gen_random_uuid(), 'fund', 'funding', 'available', amount, $3
     FROM unnest($2::bigint[]) AS t (amount)`,
    [merchantId, amounts, at],
  )
}
/** The changes of the whole balance in the ledger, in order, each with the balance after it. */
export async function ledgerOf(service: TestApp, { merchantId }: TestMerchant): Promise<[number, number][]> {
  const { rows } = await service.database.owner.query<{ change: string; after: string }>(
    `WITH moved AS (
       SELECT id, created_at, amount * ((credit IN ('available', 'reserved'))::int
         - (debit IN ('available', 'reserved'))::int) AS change
       FROM ledger_entry WHERE merchant_id = $1)
     SELECT change, sum(change) OVER (ORDER BY created_at, id) AS after
     FROM moved WHERE change <> 0 ORDER BY created_at, id`,
    [merchantId],
  )
  return rows.map(({ change, after }) => [Number(change), Number(after)])
}
/** The amount and the balance of each line on the page. */
export async function linesOn(page: Page): Promise<[number, number][]> {
  const texts = await page.evaluate<[string, string][]>(`[...document.querySelectorAll('.lines tbody tr')]
    .map((row) => ['.change', '.after'].map((cell) => row.querySelector(cell).textContent))`)
  const numberOf = (text: string) => Number(text.replace('\u2212', '-').replaceAll(/[^\d-]/g, ''))
  return texts.map(([change, after]) => [numberOf(change), numberOf(after)])
}
export const sumsOn = async (page: Page) => {
  await page.locator('.sums').waitFor()
  return plain(await page.getByRole('region', { name: 'Les chiffres du mois' }).innerText())
}
export const operationsOn = async (page: Page) =>
  (await page.locator('.lines .operation').allInnerTexts()).map((text) => plain(text))

/** Adds lines of different amounts to the month before, thirty of them at each second. */
export async function addLines(service: TestApp, shop: TestMerchant, count: number): Promise<void> {
  const amounts = Array.from({ length: count }, (_, index) => 1_000 + index)
  for (let part = 0; part < count; part += 30)
    await addMoney(
      service,
      shop,
      `${monthBefore(1)}-05T10:00:${10 + part / 30}Z`,
      amounts.slice(part, part + 30),
    )
}

/** Makes a payment, a refund, a payout and a payroll of which one payment fails, and waits for their ends. */
export async function moveMoney(service: TestApp, shop: TestMerchant) {
  const post = async (path: string, body: object) => {
    const { body: answer } = await service.rest('POST', path, { token: shop.token, body })
    expect(answer, JSON.stringify(answer)).toMatchObject({ success: true })
    return answer.data
  }
  const is = (sql: string, count: number) =>
    eventually(async () => {
      const { rows } = await service.database.owner.query(sql, [shop.merchantId])
      expect(rows).toHaveLength(count)
    })
  const operator = { payment_method: 'OperatorA' }
  const phone = customer('00')
  const paid = await post('/pay', {
    amount: 25_000,
    customer_phone: phone,
    reference: 'vente-7',
    ...operator,
  })
  await is(`SELECT FROM transaction WHERE merchant_id = $1 AND status = 'success'`, 1)
  const refund = `mutation ($id: ID!) { refundTransaction(id: $id, amount: 5000) { __typename } }`
  await service.graphql(refund, { id: String(paid.transaction_id) }, shop.token)
  await is(`SELECT FROM transaction WHERE merchant_id = $1 AND status = 'success'`, 2)
  await post('/payouts', {
    amount: 7_000,
    destination_phone: customer('00'),
    reference: 'loyer',
    ...operator,
  })
  await is(`SELECT FROM payout WHERE merchant_id = $1 AND status = 'completed'`, 1)
  const recipient = (account: string, amount: number) => ({
    name: 'Awa Traoré',
    account,
    amount,
    ...operator,
  })
  const recipients = [recipient(customer('00'), 3_000), recipient(customer('03'), 4_000)]
  const batch = await post('/bulk/batches', { title: 'Salaires', recipients })
  await post(`/bulk/batches/${batch.id}/process`, {})
  await is(`SELECT FROM batch WHERE merchant_id = $1 AND status = 'partially_completed'`, 1)
  return { payment: paid.transaction_id as number, batch: batch.id as number }
}

import { expect, test } from 'vitest'
import { useTestDatabase } from '../kit/database.ts'
import { beginRecipients, openBatch, payees, settleRecipients } from '../kit/money-bulk.ts'
import { fundedMerchant, openCollection, reverseMany, settleMany } from '../kit/money.ts'
import { beginPayouts, openDeposit, openPayout, settleDeposits, settlePayouts } from '../kit/money-out.ts'

// Where many payments end in one call, PostgreSQL sorts their entries. Without the step among the columns of
// that order, two entries of one payment could change places.

const db = await useTestDatabase()
const { pool } = db.database
const many = 40
const shops = await Promise.all([1, 2, 3, 4].map(() => fundedMerchant(pool, 1_000_000n)))

/** Makes many payments, of one shop after the other. @returns their ids */
async function makeMany(make: (shop: (typeof shops)[number]) => Promise<bigint>): Promise<bigint[]> {
  const ids: bigint[] = []
  for (let nth = 0; nth < many; nth += 1) {
    const shop = shops[nth % shops.length]
    if (shop) ids.push(await make(shop))
  }
  return ids
}

/** The steps of each payment after its first, in the order in which they were written; each order once. */
async function ordersOf(kind: string, ids: readonly bigint[], first: number): Promise<string[]> {
  const { rows } = await pool.query<{ steps: string }>(
    `SELECT DISTINCT array_to_string((array_agg(step ORDER BY id))[$2:], ', ') AS steps FROM ledger_entry
     WHERE origin = ANY (SELECT $1 || ':' || unnest($3::bigint[])) GROUP BY origin`,
    [kind, first, ids],
  )
  return rows.map(({ steps }) => steps)
}

const less = (ids: readonly bigint[], to: string) => ids.map((id) => ({ id, to, amount: 960n }))

test('collections: the payment, then what is above it; taken back in the same order', async () => {
  const ids = await makeMany(async (shop) => (await openCollection(pool, shop)).transactionId)
  await settleMany(
    pool,
    ids.map((id) => ({ id, to: 'success', amount: 400_000n })),
  )
  expect(await ordersOf('transaction', ids, 1)).toEqual(['credit, excess'])
  await reverseMany(pool, ids)
  expect(await ordersOf('transaction', ids, 3)).toEqual(['reverse, excess_return'])
})

test('deposits: what was paid, then the rest', async () => {
  const ids = await makeMany(async (shop) => (await openDeposit(pool, shop)).transactionId)
  await settleDeposits(pool, less(ids, 'success'))
  expect(await ordersOf('transaction', ids, 1)).toEqual(['reserve, post, withhold'])
})

test('payouts: what was paid, then the rest', async () => {
  const ids = await makeMany((shop) => openPayout(pool, shop))
  await beginPayouts(pool, 'OperatorA', many)
  await settlePayouts(pool, less(ids, 'completed'))
  expect(await ordersOf('payout', ids, 1)).toEqual(['reserve, post, withhold'])
})

test('recipients of a batch: what was paid, then the rest', async () => {
  const [shop] = shops
  if (!shop) throw new Error('no shop')
  await Promise.all([1, 2, 3, 4, 5].map(() => openBatch(pool, shop, payees(8, { amount: 1_000n }))))
  const ids = (await beginRecipients(pool, { room: many })).map(({ recipientId }) => recipientId)
  expect(ids).toHaveLength(many)
  await settleRecipients(pool, less(ids, 'success'))
  expect(await ordersOf('recipient', ids, 1)).toEqual(['post, withhold'])
})

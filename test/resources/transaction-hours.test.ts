import { expect, test } from 'vitest'
import type { Context } from '../../src/context.ts'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import {
  compactCounts,
  countTransactions,
  findPage,
  sumTransactions,
  type TransactionFilter,
  transactionsWhere,
} from '../../src/resources/transactions/list.ts'
import { borrow } from '../kit/client.ts'
import { useTestDatabase } from '../kit/database.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { collectMany, item, settleMany } from '../kit/money.ts'
import { randomFrom } from '../kit/random.ts'
import { seed } from '../kit/seeds.ts'
import { wrongHours } from '../kit/transaction-counts.ts'

// The counts and sums of transactions by hour, and the totals and pages of a period that they give.

const db = await useTestDatabase()
const { pool } = db.database
const hourMs = 60 * 60 * 1_000
const start = Date.UTC(2026, 0, 1)

/** Rows of several kinds over ten hours, some exactly at the hour or one millisecond before it. */
async function fill(merchantId: number, from: number, to: number): Promise<void> {
  await db.owner.query(
    `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
       reference, request_data, settled_amount, created_at)
     SELECT $1, CASE n % 7 WHEN 0 THEN 'deposit' ELSE 'pay' END::transaction_type,
       ('Operator' || substr('ABCD', 1 + n % 4, 1))::provider, '+22370000001', 1000 + n, s.status,
       'h-' || n, '{}',
       CASE s.status WHEN 'success' THEN n END, $4::timestamptz + n % 3000 * interval '12001 milliseconds'
         - CASE n % 3 WHEN 0 THEN interval '1 millisecond' ELSE interval '0' END
     FROM generate_series($2::int, $3::int) AS n, LATERAL (
       SELECT (ARRAY['failed', 'success', 'expired', 'success'])[1 + n % 4]::transaction_status AS status
     ) AS s`,
    [merchantId, from, to, new Date(start)],
  )
}

const asking = (merchantId: number) =>
  ({ actor: { merchantId }, database: db.database }) as unknown as Context

const random = randomFrom(seed)

/** Random periods with and without a kind; every total and page must be that of the rows. */
async function comparePeriods(merchantId: number, rounds: number): Promise<void> {
  const ctx = asking(merchantId)
  const { prisma } = db.database
  const moment = () => {
    const at = start + Math.floor(random() * 11 * hourMs)
    return new Date(random() < 0.3 ? Math.round(at / hourMs) * hourMs : at)
  }
  for (let round = 0; round < rounds; round += 1) {
    const [one, other] = [moment(), moment()].toSorted((a, b) => Number(a) - Number(b))
    const filter: TransactionFilter = {
      ...(round % 5 !== 0 && { createdFrom: one }),
      ...(round % 7 !== 0 && { createdTo: round % 11 === 0 ? one : other }),
      ...(round % 2 === 0 && { status: ['failed', 'expired'] }),
      ...(round % 3 === 0 && { paymentMethod: 'OperatorB' }),
    }
    const where = transactionsWhere(ctx, filter)
    const total = await prisma.transaction.count({ where })
    expect(await countTransactions(ctx, filter), JSON.stringify(filter)).toBe(total)
    const { _sum: sum } = await prisma.transaction.aggregate({ where, _sum: { amount: true } })
    expect(await sumTransactions(ctx, filter), JSON.stringify(filter)).toBe(sum.amount ?? 0n)
    const window = await findPage(ctx, filter, { skip: 3, take: 5 })
    const list = { where, orderBy: { id: 'desc' }, take: 5, select: { id: true } } as const
    const id = window?.id ?? {}
    const found = window
      ? await prisma.transaction.findMany({ ...list, where: { AND: [where, { id }] }, skip: window.skip })
      : []
    expect(found).toEqual(await prisma.transaction.findMany({ ...list, skip: 3 }))
  }
}

test('totals and pages of every period equal the rows, before and after changes are added', async () => {
  const { merchantId } = await makeMerchant(pool)
  const { merchantId: neighbour } = await makeMerchant(pool)
  await fill(merchantId, 1, 1_500)
  await fill(neighbour, 1, 500)
  await asMerchant(merchantId, () => comparePeriods(merchantId, 20))
  await compactCounts(pool)
  await fill(merchantId, 1_501, 3_000)
  await asMerchant(merchantId, () => comparePeriods(merchantId, 60))
  expect(await wrongHours(db.owner)).toEqual([])
  await compactCounts(pool)
  await asMerchant(merchantId, () => comparePeriods(merchantId, 60))
  expect(await wrongHours(db.owner)).toEqual([])
})

test('a sum by hour is that of its rows, also after a settlement in a later hour', async () => {
  const shop = await makeMerchant(pool)
  const [made] = await collectMany(pool, [item(shop)])
  await db.owner.query(`UPDATE transaction SET created_at = created_at - interval '2 hours' WHERE id = $1`, [
    made?.transactionId,
  ])
  await settleMany(pool, [{ id: made?.transactionId ?? 0n, to: 'success' }])
  await compactCounts(pool)
  const { rows } = await db.owner.query(
    `SELECT status, n, amount, settled_amount AS settled FROM transaction_hour
     WHERE merchant_id = $1 AND n <> 0`,
    [shop.merchantId],
  )
  expect(rows).toEqual([{ status: 'success', n: 1n, amount: 5_000n, settled: 5_000n }])
  expect(await wrongHours(db.owner)).toEqual([])
})

test.each(['n = n + 1', 'amount = amount + 1', 'settled_amount = settled_amount - 1', 'last_bucket = -1'])(
  'the proof notices %s',
  async (change) => {
    const client = await borrow(db.owner)
    await client.query('BEGIN')
    await client.query(`UPDATE transaction_hour SET ${change} WHERE n > 0`)
    const wrong = await wrongHours(client)
    await client.query('ROLLBACK')
    client.release()
    expect(wrong).not.toEqual([])
  },
)

import { offsetNearMax } from '../../src/resources/transactions/list.ts'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Context } from '../../src/context.ts'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import {
  countTransactions,
  findPage,
  compactCounts,
  type TransactionFilter,
  transactionsWhere,
} from '../../src/resources/transactions/list.ts'
import { borrow } from '../kit/client.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { collectMany, item, openCollection, settleMany } from '../kit/money.ts'
import { randomFrom } from '../kit/random.ts'
import { seed } from '../kit/seeds.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { wrongCounts } from '../kit/transaction-counts.ts'

let db: TestDatabase
let other: TestDatabase['database']['pool']
let pool: pg.Pool
beforeAll(async () => {
  db = await createTestDatabase()
  pool = db.database.pool
  other = db.owner
})
afterAll(() => db.drop())

async function fold(take: number): Promise<void> {
  await pool.query('SELECT compact_transaction_counts($1)', [take])
}

// After each test the counts must equal the rows, before and after the changes are added to them.
afterEach(async () => {
  const unfolded = await wrongCounts(other)
  await compactCounts(pool)
  const wrong = [...unfolded, ...(await wrongCounts(other))]
  if (wrong.length > 0) throw new Error(wrong.join('\n'))
})

function asking(merchantId: number): Context {
  return { actor: { merchantId }, database: db.database } as unknown as Context
}

/** The count that the merchant itself reads. */
function countOf(merchantId: number, filter: TransactionFilter): Promise<number> {
  return asMerchant(merchantId, () => countTransactions(asking(merchantId), filter))
}

/** Rows of two merchants with alternating ids, of every kind. */
async function fill(merchantIds: readonly number[], rows: number): Promise<void> {
  // In several statements, because each must be short.
  for (let from = 1; from <= rows; from += 2_000)
    await fillPart(merchantIds, from, Math.min(rows, from + 1_999))
}

async function fillPart(merchantIds: readonly number[], from: number, to: number): Promise<void> {
  await db.owner.query(
    `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
       reference, request_data, settled_amount, created_at)
     SELECT ($1::int[])[1 + n % 2], CASE n % 7 WHEN 0 THEN 'deposit' ELSE 'pay' END::transaction_type,
       ('Operator' || substr('ABCD', 1 + n / 3 % 4, 1))::provider, '+22370000001', 5000, status, 'bulk-' || n,
       '{}', CASE status WHEN 'success' THEN 5000 END, now()
     FROM generate_series($2::int, $3::int) AS n,
       LATERAL (SELECT (CASE WHEN n % 997 = 0 THEN 'expired' WHEN n % 5 = 0 THEN 'failed' ELSE 'success' END
         )::transaction_status AS status) AS picked`,
    [merchantIds, from, to],
  )
}

const filters: readonly TransactionFilter[] = [
  {},
  { status: 'failed' },
  { status: 'expired' },
  { status: 'pending' },
  { paymentMethod: 'OperatorB' },
  { transactionType: 'deposit', paymentMethod: 'OperatorC', status: 'success' },
  { paymentMethod: ['OperatorA', 'OperatorC'], status: ['failed', 'expired'] },
]

test('every page of every filter equals the page found by skipping the rows one by one', async () => {
  const [first, second] = [await makeMerchant(pool), await makeMerchant(pool)]
  await fill([first.merchantId, second.merchantId], 10_000)
  for (const folded of [0, 37, 20_000]) {
    await fold(folded)
    for (const shop of [first, second]) await asMerchant(shop.merchantId, () => comparePages(shop.merchantId))
  }
  const { rows } = await pool.query('SELECT FROM transaction_block WHERE n < 3_072')
  expect(rows.length).toBeGreaterThan(3)
})

const random = randomFrom(seed)

/** Every filter's count and some of its pages, also at the ends of blocks, compared with the rows. */
async function comparePages(merchantId: number): Promise<void> {
  const ctx = asking(merchantId)
  const { prisma } = db.database
  const pick = (size: number) => Math.floor(random() * size)
  const borders = await prisma.transactionBlock.findMany({ where: { firstId: { gt: 0 } } })
  expect(await prisma.transaction.count()).toBe(5_000)
  for (const filter of filters) {
    const where = transactionsWhere(ctx, filter)
    const total = await prisma.transaction.count({ where })
    expect(await countTransactions(ctx, filter)).toBe(total)
    const skips = [0, offsetNearMax, pick(total), pick(total), Math.max(0, total - 3), total]
    for (const { firstId } of borders) {
      const newer = await prisma.transaction.count({ where: { ...where, id: { gte: firstId } } })
      skips.push(Math.max(0, newer - 1), newer, newer + 1)
    }
    for (const skip of skips) {
      const page = await findPage(ctx, filter, { skip, take: 20 })
      const list = { where, orderBy: { id: 'desc' }, take: 20, select: { id: true } } as const
      const found = page && (await prisma.transaction.findMany({ ...list, ...pageOf(where, page) }))
      expect(page?.skip ?? 0).toBeLessThan(offsetNearMax)
      expect(found ?? []).toEqual(await prisma.transaction.findMany({ ...list, skip }))
    }
  }
}

test('a position in a list is exact at its moment, while rows are written and counts compacted', async () => {
  const [shop, otherShop] = [await makeMerchant(pool), await makeMerchant(pool)]
  const merchants = [shop.merchantId, otherShop.merchantId]
  await fill(merchants, 6_000)
  let busy = true
  const writing = async () => {
    while (busy) {
      const made = await collectMany(pool, [item(shop), item(otherShop), item(shop)])
      const ids = made.flatMap(({ transactionId }) => (transactionId === null ? [] : [transactionId]))
      await settleMany(
        pool,
        ids.map((id) => ({ id, to: 'failed' })),
      )
    }
  }
  const adding = async () => {
    while (busy) await fold(2)
  }
  const comparing = async () => {
    for (let round = 0; round < 80; round += 1) {
      const { rows } = await other.query(placesSql, [shop.merchantId, round * 37, round])
      expect(rows).toEqual([{ every: true, kind: true }])
    }
  }
  await Promise.all([writing(), adding(), comparing().finally(() => (busy = false))])
})

/** Whether positions, also when looked up repeatedly, are where skipping the rows ends. */
const placesSql = `SELECT (
    SELECT bool_and(transaction_at($1, $2) IS NOT DISTINCT FROM (
      SELECT id FROM transaction WHERE merchant_id = $1 ORDER BY id DESC OFFSET $2::int LIMIT 1))
    FROM generate_series(1, 20)) AS every,
  (SELECT newest FROM transaction_of_kinds_at($1, NULL, NULL, '{failed}', $3, 20)) IS NOT DISTINCT FROM (
    SELECT id FROM transaction WHERE merchant_id = $1 AND status = 'failed'
    ORDER BY id DESC OFFSET $3::int LIMIT 1
  ) AS kind`

test('collections and outcomes at once on two pools while counts are added: never a deadlock', async () => {
  const shops = await Promise.all(Array.from({ length: 6 }, () => makeMerchant(pool)))
  const items = shops.flatMap((shop) => Array.from({ length: 8 }, () => item(shop)))
  const rounds = Array.from({ length: 12 }, async (_none, round) => {
    const connection = round % 2 ? pool : other
    const made = await collectMany(
      connection,
      (round % 3 ? items : items.toReversed()).map((each, ordinal) => ({
        ...each,
        reference: `mixed-${round % 4}-${ordinal}`,
        provider: ordinal % 2 ? 'OperatorA' : 'OperatorD',
      })),
    )
    const ids = made.flatMap(({ transactionId }) => (transactionId === null ? [] : [transactionId]))
    const outcomes = ids.map((id, ordinal) => ({ id, to: ordinal % 3 ? 'success' : 'failed' }))
    const [moved] = await Promise.all([
      settleMany(connection, outcomes),
      settleMany(round % 2 ? other : pool, outcomes.toReversed()),
      fold(50),
    ])
    expect(moved).toHaveLength(outcomes.length)
  })
  await Promise.all(rounds)
  for (const { merchantId } of shops) {
    const counted = await db.owner.query('SELECT FROM transaction WHERE merchant_id = $1', [merchantId])
    const rows = counted.rowCount ?? 0
    expect(rows).toBeGreaterThan(8)
    expect(await countOf(merchantId, {})).toBe(rows)
  }
})

test('a transaction that commits late, below counted ids, is counted and has its position', async () => {
  const [shop, otherShop] = [await makeMerchant(pool), await makeMerchant(pool)]
  const late = await borrow(other)
  await late.query('BEGIN')
  await late.query('SET LOCAL idle_in_transaction_session_timeout = 0')
  await collectMany(late, [item(shop)])
  await fill([shop.merchantId, otherShop.merchantId], 6_000)
  await compactCounts(pool)
  await late.query('COMMIT')
  late.release()
  // Others fall into the range that the second block begins with; 3,000 rows include one wherever they begin.
  const moved = await db.owner.query<{ id: bigint }>(
    `WITH gone AS (
       DELETE FROM transaction WHERE id IN (
         SELECT t.id FROM transaction_block b JOIN transaction t ON t.id / 1024 = b.first_id / 1024
         WHERE b.merchant_id = $1 AND b.first_id > 0 AND t.merchant_id = $2 ORDER BY t.id LIMIT 3)
       RETURNING *)
     INSERT INTO transaction (id, merchant_id, transaction_type, payment_method, customer_phone, amount,
       status, reference, request_data, settled_amount, created_at)
     SELECT id, $1, transaction_type, payment_method, customer_phone, amount, status,
       reference, request_data, settled_amount, created_at FROM gone`,
    [shop.merchantId, otherShop.merchantId],
  )
  expect(moved.rowCount).toBe(3)
  expect(await countOf(shop.merchantId, {})).toBe(3_004)
  for (const folded of [0, 1, 20_000]) {
    await fold(folded)
    // In several statements, because each must be short.
    for (let from = 0; from < 3_004; from += 100) {
      const misplaced = await pool.query(
        `SELECT ordinal FROM (
           SELECT id, row_number() OVER (ORDER BY id DESC) - 1 AS ordinal FROM transaction
           WHERE merchant_id = $1 OFFSET $2 LIMIT 100
         ) AS row WHERE transaction_at($1, ordinal) IS DISTINCT FROM id`,
        [shop.merchantId, from],
      )
      expect(misplaced.rows).toEqual([])
    }
  }
})

test('a rolled-back statement, a correction and a deletion by the owner leave the counts right', async () => {
  const shop = await makeMerchant(pool)
  const { transactionId } = await openCollection(pool, shop)
  const undone = await borrow(other)
  await undone.query('BEGIN')
  await collectMany(undone, [item(shop), item(shop)])
  await undone.query('ROLLBACK')
  undone.release()
  expect(await countOf(shop.merchantId, {})).toBe(1)
  expect(await countOf(shop.merchantId, { status: 'pending' })).toBe(1)
  await settleMany(pool, [{ id: transactionId, to: 'expired' }])
  await settleMany(pool, [{ id: transactionId, to: 'success' }])
  expect(await countOf(shop.merchantId, { status: 'pending' })).toBe(0)
  expect(await countOf(shop.merchantId, { status: 'success' })).toBe(1)
  const gone = await makeMerchant(pool)
  await other.query(
    `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
       reference, request_data, created_at)
     VALUES ($1, 'balance_check', 'OperatorA', '', 0, 'failed', 'gone', '{}', now())`,
    [gone.merchantId],
  )
  await other.query('DELETE FROM transaction WHERE merchant_id = $1', [gone.merchantId])
  expect(await countOf(gone.merchantId, {})).toBe(0)
})

test.each([
  ['a total', 'UPDATE transaction_count SET n = n + 1 WHERE n > 0'],
  ['a block', 'UPDATE transaction_block SET n = n - 1 WHERE n > 0'],
  ['a position of a block', 'UPDATE transaction_block SET n_before = n_before + 1 WHERE n > 0'],
  ['a kind in a block', 'UPDATE transaction_block_count SET n = n + 1 WHERE n > 0'],
])('the proof notices a wrong count of %s', async (_what, statement) => {
  const client = await borrow(other)
  await client.query('BEGIN')
  await client.query(statement)
  const wrong = await wrongCounts(client)
  await client.query('ROLLBACK')
  client.release()
  expect(wrong).not.toEqual([])
})

function pageOf(where: object, { id, skip }: { id?: object; skip: number }) {
  return { where: { ...where, ...(id && { id }) }, skip }
}

test('a backlog is compacted within the time of a statement, though the plan was made for none', async () => {
  const { merchantId } = await makeMerchant(db.owner)
  const session = await borrow(pool)
  await compactCounts(pool)
  await db.owner.query('VACUUM ANALYZE transaction_count_change')
  // From its sixth run on a session keeps its plan.
  for (let run = 0; run < 8; run += 1) await session.query('SELECT compact_transaction_counts(20000)')
  await db.owner.query(
    `INSERT INTO transaction_count_change
       (merchant_id, bucket, transaction_type, payment_method, status, hour, n)
     SELECT $1, n / 2, 'pay', 'OperatorA', 'success', date_trunc('hour', now()), 1 - 2 * (n % 2)
     FROM generate_series(0, 19999) AS n`,
    [merchantId],
  )
  await session.query('SELECT compact_transaction_counts(20000)')
  session.release()
  const { rows } = await pool.query('SELECT FROM transaction_count_change WHERE merchant_id = $1', [
    merchantId,
  ])
  expect(rows).toEqual([])
})

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { batchStates, recipientStates } from '../../src/resources/batches/states.ts'
import { approvalStates } from '../../src/resources/approvals/states.ts'
import { payoutStates } from '../../src/resources/payouts/states.ts'
import { type TransactionStatus, transactionStates } from '../../src/resources/transactions/states.ts'
import { deliveryStates } from '../../src/resources/webhooks/states.ts'
import type { States } from '../../src/shared/states.ts'
import { makeMerchant, type SignedInMerchant } from '../kit/merchants.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { eventTypes, settleMany } from '../kit/money.ts'

let db: TestDatabase
let merchant: SignedInMerchant
let reference = 0
const { statuses } = transactionStates
const pairs = statuses.flatMap((from) => statuses.map((to) => [from, to] as const))

beforeAll(async () => {
  db = await createTestDatabase()
  merchant = await makeMerchant(db.database.pool)
})
afterAll(() => db.drop())

const settles = (status: string) => status === 'success' || status === 'reversed'

async function insertWith(status: TransactionStatus, type: 'pay' | 'deposit' = 'pay'): Promise<bigint> {
  const { rows } = await db.owner.query<{ id: bigint }>(
    `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
       reference, request_data, settled_amount, created_at)
     VALUES ($1, $2, 'OperatorA', '+22370000001', 5000, $3, $4, '{}', $5, now()) RETURNING id`,
    [merchant.merchantId, type, status, `life-${(reference += 1)}`, settles(status) ? 5_000n : null],
  )
  return rows[0]?.id ?? 0n
}

const lifecycles: States<string>[] = [
  transactionStates,
  payoutStates,
  approvalStates,
  batchStates,
  recipientStates,
  deliveryStates,
]

test.each(lifecycles)('the database holds exactly the moves of states.ts: $name', async (states) => {
  const { rows } = await db.owner.query<{ move: string }>(
    `SELECT from_status || ' → ' || to_status AS move FROM lifecycle_move WHERE lifecycle = $1`,
    [states.name],
  )
  const code = states.statuses.flatMap((from) =>
    Object.keys(states.moves[from] ?? {}).map((to) => `${from} → ${to}`),
  )
  expect(rows.map(({ move }) => move).toSorted()).toEqual(code.toSorted())
  const { rows: words } = await db.owner.query<{ word: string }>(
    `SELECT unnest(enum_range(NULL::${states.name}_status))::text AS word`,
  )
  expect(words.map(({ word }) => word).toSorted()).toEqual(states.statuses.toSorted())
})

test('the database knows no other lifecycle', async () => {
  const { rows } = await db.owner.query('SELECT DISTINCT lifecycle FROM lifecycle_move ORDER BY lifecycle')
  expect(rows.map(({ lifecycle }) => lifecycle)).toEqual(lifecycles.map(({ name }) => name).toSorted())
})

describe('settling moves along the table and no other way', () => {
  test.each(pairs)('%s to %s', async (from, to) => {
    const id = await insertWith(from)
    const [answer] = await settleMany(db.database.pool, [{ id, to, source: 'query' }])
    // Processing and reversed are no outcomes: verbs of their own will make them, with their own movements.
    const isOutcome = to !== 'processing' && to !== 'reversed'
    const allowed = isOutcome && transactionStates.canMove(from, to)
    expect(answer).toMatchObject({ moved: allowed, was: from, status: allowed ? to : from })
    const { rows } = await db.owner.query('SELECT status FROM transaction WHERE id = $1', [id])
    expect(rows).toEqual([{ status: allowed ? to : from }])
    const credits = await db.owner.query('SELECT FROM ledger_entry WHERE origin = $1', [`transaction:${id}`])
    expect(credits.rowCount).toBe(allowed && to === 'success' ? 1 : 0)
  })
})

describe('the trigger stops the owner too', () => {
  test.each(pairs)('%s to %s', async (from, to) => {
    const id = await insertWith(from)
    const change = db.owner.query('UPDATE transaction SET status = $2, settled_amount = $3 WHERE id = $1', [
      id,
      to,
      settles(to) ? 5_000n : null,
    ])
    const outcome = await change.then(
      () => 'changed',
      (error: { code: string }) => error.code,
    )
    expect(outcome).toBe(from === to || transactionStates.canMove(from, to) ? 'changed' : '23000')
  })
})

describe('reviving a payment that ended unpaid', () => {
  const over = ['expired', 'failed', 'cancelled'] as const
  const cases = over.flatMap((from) =>
    (['initiate', 'query', 'service', 'callback'] as const).flatMap((source) =>
      (['pay', 'deposit'] as const).map((type) => [from, source, type] as const),
    ),
  )
  test.each(cases)('%s by %s of a %s', async (from, source, type) => {
    const id = await insertWith(from, type)
    const [answer] = await settleMany(db.database.pool, [{ id, to: 'success', source }])
    const proof = type === 'pay' && (source === 'initiate' || source === 'query')
    expect(answer).toMatchObject({ moved: proof, status: proof ? 'success' : from, late: proof })
  })
})

test.each([
  ['amount', '6000'],
  ['customer_phone', `'+22370000009'`],
  ['reference', `'another'`],
  ['merchant_id', 'merchant_id + 1'],
  ['payment_method', `'OperatorD'`],
  ['transaction_type', `'deposit'`],
  ['refund_of_id', 'id'],
])('the terms of a transaction never change: %s', async (column, value) => {
  const id = await insertWith('pending')
  const change = db.owner.query(`UPDATE transaction SET ${column} = ${value} WHERE id = $1`, [id])
  await expect(change).rejects.toMatchObject({ code: '23000' })
})

test('each move writes one event', async () => {
  const other = await makeMerchant(db.database.pool)
  const { rows } = await db.owner.query<{ id: bigint }>(
    `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
       reference, request_data, created_at)
     VALUES ($1, 'pay', 'OperatorA', '+22370000001', 5000, 'pending', 'told', '{}', now()) RETURNING id`,
    [other.merchantId],
  )
  const id = rows[0]?.id ?? 0n
  for (const to of ['expired', 'expired', 'success', 'success'])
    await settleMany(db.database.pool, [{ id, to }])
  expect(await eventTypes(db.owner, other.merchantId)).toEqual(['payment_expired', 'payment_received'])
})

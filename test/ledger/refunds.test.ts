import { expect, test } from 'vitest'
import { makeMerchant, type SignedInMerchant } from '../kit/merchants.ts'
import { useTestDatabase } from '../kit/database.ts'
import { decideTogether } from '../kit/differences.ts'
import { balanceOf, eventTypes, openCollection, problemsOf, reverseMany, settleMany } from '../kit/money.ts'
import {
  depositItem,
  depositMany,
  entriesOf,
  openDeposit,
  requestOf,
  reverseDisbursements,
  settleDeposits,
} from '../kit/money-out.ts'

const db = await useTestDatabase()
const { pool } = db.database
/** A second process. */
const other = db.secondProcess()

const node = (n: number) => (n % 2 ? pool : other.pool)

/** A merchant and its one collection, paid. */
async function paid(amount = 10_000n): Promise<{ merchant: SignedInMerchant; original: bigint }> {
  const merchant = await makeMerchant(pool)
  const { transactionId } = await openCollection(pool, merchant, { amount })
  await settleMany(pool, [{ id: transactionId, to: 'success' }])
  return { merchant, original: transactionId }
}

async function statusOf(id: bigint): Promise<string | undefined> {
  const { rows } = await pool.query<{ status: string }>('SELECT status FROM transaction WHERE id = $1', [id])
  return rows[0]?.status
}

const outcomeOf = async (merchant: SignedInMerchant, refundOf: bigint, amount: bigint, on = pool) =>
  (await depositMany(on, [depositItem(merchant, { refundOf, amount })]))[0]?.outcome

test('10 parallel refunds of 60 %: one is made, the others find too little left', async () => {
  const { merchant, original } = await paid()
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, (_, n) => outcomeOf(merchant, original, 6_000n, node(n))),
  )
  expect(outcomes.filter((outcome) => outcome === 'made')).toHaveLength(1)
  expect(outcomes.filter((outcome) => outcome === 'too_large')).toHaveLength(9)
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 4_000n, reserved: 6_000n })
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test('in one call only the first refund of a collection is judged, the others by another call', async () => {
  const { merchant, original } = await paid()
  const refunds = [11_000n, 6_000n, 3_000n, 4_000n].map((amount) =>
    depositItem(merchant, { refundOf: original, amount }),
  )
  const answers = await depositMany(pool, [...refunds, depositItem(merchant)])
  expect(answers.map(({ outcome }) => outcome)).toEqual(['too_large', 'made', 'again', 'again', 'made'])
  expect((await depositMany(pool, refunds.slice(2))).map(({ outcome }) => outcome)).toEqual(['made', 'again'])
  expect((await depositMany(pool, refunds.slice(3))).map(({ outcome }) => outcome)).toEqual(['too_large'])
})

test('only a paid collection of the same merchant that is not given back is refundable', async () => {
  const { merchant, original } = await paid()
  const { original: foreign } = await paid()
  const { transactionId: open } = await openCollection(pool, merchant)
  const { transactionId: deposit } = await openDeposit(pool, merchant)
  for (const id of [foreign, open, deposit, 999_999_999n])
    expect(await outcomeOf(merchant, id, 1_000n)).toBe('not_refundable')
  await reverseMany(pool, [original])
  expect(await outcomeOf(merchant, original, 1_000n)).toBe('not_refundable')
})

test('a small rest can be given back, a deposit of its size cannot be made', async () => {
  const { merchant, original } = await paid(1_500n)
  expect(await outcomeOf(merchant, original, 1_000n)).toBe('made')
  expect(await outcomeOf(merchant, original, 500n)).toBe('made')
  const small = depositMany(pool, [depositItem(merchant, { amount: 999n })])
  expect(await small).toMatchObject([{ outcome: 'short' }])
  const { merchant: rich } = await paid()
  const stopped = depositMany(pool, [depositItem(rich, { amount: 999n })])
  await expect(stopped).rejects.toMatchObject({ constraint: 'transaction_amount' })
})

test('a payment that refunds gave back wholly is reversed once, by the completing refund', async () => {
  const { merchant, original } = await paid()
  const refunds = []
  for (const amount of [6_000n, 4_000n])
    refunds.push((await openDeposit(pool, merchant, { refundOf: original, amount })).transactionId)
  const [first, second] = refunds as [bigint, bigint]
  await settleDeposits(pool, [{ id: first, to: 'success' }])
  expect(await statusOf(original)).toBe('success')
  await Promise.all(
    Array.from({ length: 20 }, (_, n) => settleDeposits(node(n), [{ id: second, to: 'success' }])),
  )
  expect(await statusOf(original)).toBe('reversed')
  expect(await eventTypes(pool, merchant.merchantId)).toEqual([
    'payment_pending',
    'payment_received',
    'deposit_processing',
    'deposit_processing',
    'deposit_completed',
    'deposit_completed',
    'payment_reversed',
  ])
  const { rows } = await pool.query<{ data: object }>(
    `SELECT data FROM event WHERE merchant_id = $1 AND type IN ('payment_reversed', 'deposit_completed')
     ORDER BY id DESC LIMIT 2`,
    [merchant.merchantId],
  )
  expect(rows.map(({ data }) => data)).toMatchObject([
    { transaction_id: Number(original), previous_status: 'success', status: 'reversed', refunded: true },
    { transaction_id: Number(second), refund_of: Number(original), amount: 4_000 },
  ])
  expect(await entriesOf(pool, `transaction:${original}`)).toEqual([
    'credit clearing_operator_a > available 10000',
  ])
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 0n, reserved: 0n })
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test('two halves that end in one call, or in two calls at once, reverse the payment once', async () => {
  for (const together of [true, false]) {
    const { merchant, original } = await paid()
    const halves = await Promise.all(
      [5_000n, 5_000n].map((amount) => openDeposit(pool, merchant, { refundOf: original, amount })),
    )
    const ends = halves.map(({ transactionId: id }) => ({ id, to: 'success' }))
    if (together) await settleDeposits(pool, ends)
    else await Promise.all(ends.map((end, n) => settleDeposits(node(n), [end])))
    expect(await statusOf(original)).toBe('reversed')
    const events = await eventTypes(pool, merchant.merchantId)
    expect(events.filter((type) => type === 'payment_reversed')).toHaveLength(1)
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  }
})

test('a refund that failed, or of which a rest was credited, leaves that much to give', async () => {
  const { merchant, original } = await paid()
  const refund = async (amount: bigint) =>
    (await openDeposit(pool, merchant, { refundOf: original, amount })).transactionId
  await settleDeposits(pool, [{ id: await refund(10_000n), to: 'failed' }])
  const less = await refund(10_000n)
  await settleDeposits(pool, [{ id: less, to: 'success', amount: 9_000n }])
  expect(await statusOf(original)).toBe('success')
  expect(await outcomeOf(merchant, original, 1_000n)).toBe('too_large')
  await decideTogether(db.database, 'transaction_id', less, 'credited')
  expect(await outcomeOf(merchant, original, 1_001n)).toBe('too_large')
  const last = await refund(1_000n)
  await settleDeposits(pool, [{ id: last, to: 'success' }])
  expect(await statusOf(original)).toBe('reversed')
  expect(await reverseDisbursements(pool, [`transaction:${last}`])).toEqual([true])
  expect([await statusOf(last), await statusOf(original)]).toEqual(['reversed', 'reversed'])
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 1_000n, reserved: 0n })
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test('an operator reverses a payment that refunds gave back: once, and its status stays', async () => {
  const { merchant, original } = await paid()
  const { transactionId: id } = await openDeposit(pool, merchant, { refundOf: original, amount: 10_000n })
  await settleDeposits(pool, [{ id, to: 'success' }])
  const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => reverseMany(node(n), [original])))
  expect(answers.flat().filter(({ moved }) => moved)).toEqual([
    { moved: true, status: 'reversed', shortfall: 10_000n },
  ])
  expect(await entriesOf(pool, `transaction:${original}`)).toEqual([
    'credit clearing_operator_a > available 10000',
    'shortfall suspense > clearing_operator_a 10000',
  ])
  expect((await eventTypes(pool, merchant.merchantId)).slice(-2)).toEqual([
    'payment_reversed',
    'payment_reversed',
  ])
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test('a deposit comes back once, where the operator gives it back', async () => {
  const { merchant } = await paid()
  const { transactionId: id } = await openDeposit(pool, merchant, { amount: 3_000n })
  const origin = `transaction:${id}`
  expect(await reverseDisbursements(pool, [origin, 'transaction:1'])).toEqual([false, false])
  await settleDeposits(pool, [{ id, to: 'success', watchMs: 60_000 }])
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => reverseDisbursements(node(n), [origin, origin])),
  )
  expect(answers.flat().filter(Boolean)).toEqual([true])
  expect((await entriesOf(pool, origin)).at(-1)).toBe('reverse clearing_operator_a > available 3000')
  expect(await requestOf(pool, 'transaction_id', id)).toMatchObject([{ state: 'settled', asked: false }])
  expect((await eventTypes(pool, merchant.merchantId)).at(-1)).toBe('deposit_reversed')
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 10_000n, reserved: 0n })
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test('refunds and the operator’s own reversal at once: the books hold', async () => {
  const many = await Promise.all(Array.from({ length: 10 }, () => paid()))
  await Promise.all(
    many.flatMap(({ merchant, original }, n) => [
      reverseMany(node(n), [original]),
      ...[4_000n, 6_000n].map(async (amount) => {
        const [refund] = await depositMany(node(n), [depositItem(merchant, { refundOf: original, amount })])
        if (refund?.transactionId)
          await settleDeposits(node(n + 1), [{ id: refund.transactionId, to: 'success' }])
      }),
    ]),
  )
  expect(await Promise.all(many.map(({ original }) => statusOf(original)))).toEqual(
    Array(10).fill('reversed'),
  )
  expect(await problemsOf(pool, ...many.map(({ merchant }) => merchant.merchantId))).toEqual([])
})

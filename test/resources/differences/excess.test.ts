import { describe, expect, test } from 'vitest'
import { readBalance } from '../../../src/ledger/balance.ts'
import { readStatement } from '../../../src/ledger/statement.ts'
import { decideDifference } from '../../../src/resources/differences/decide.ts'
import { listDifferences, type Verdict } from '../../../src/resources/differences/list.ts'
import type { SignedInMerchant } from '../../kit/merchants.ts'
import { useTestDatabase } from '../../kit/database.ts'
import { corrupt } from '../../kit/corrupt.ts'
import {
  eventTypes,
  fundedMerchant,
  openCollection,
  problemsOf,
  reverseMany,
  settleMany,
} from '../../kit/money.ts'
import { openDeposit, openPayout, settleDeposits } from '../../kit/money-out.ts'

// Money that an operator received beyond the asked amount is kept apart, and people decide once about it.
const db = await useTestDatabase()
const { pool } = db.database

const holdingsOf = async ({ merchantId }: SignedInMerchant) => {
  const { available, reserved, receivable } = await readBalance(pool, merchantId)
  return [available, reserved, receivable]
}

/** A collection of 5,000 francs of which the operator says that so much was paid. */
async function paid(said: bigint): Promise<{ merchant: SignedInMerchant; id: bigint }> {
  const merchant = await fundedMerchant(pool, 0n)
  const { transactionId: id } = await openCollection(pool, merchant)
  expect(await settleMany(pool, [{ id, to: 'success', amount: said }])).toMatchObject([{ moved: true }])
  return { merchant, id }
}

async function moved(id: bigint): Promise<string[]> {
  const { rows } = await pool.query<{ line: string }>(
    `SELECT concat_ws(' ', step, debit, credit, amount) AS line FROM ledger_entry
     WHERE origin = 'transaction:' || $1::bigint ORDER BY id`,
    [id],
  )
  return rows.map(({ line }) => line)
}

const exceptionOf = async (id: bigint) => {
  const { rows } = await pool.query(
    `SELECT id, state, decided_by AS "by", reason FROM settlement_exception WHERE transaction_id = $1`,
    [id],
  )
  return rows[0]
}

/** Decides an excess as one person. */
const decideAs = async (by: string, id: bigint, verdict: Verdict) =>
  decideDifference({ database: db.database }, verdict, {
    id: String((await exceptionOf(id))?.id),
    by,
    reason: 'the payer sent it twice',
  })

/** Two people decide the same. */
async function decide(id: bigint, verdict: Verdict) {
  await decideAs('Moussa', id, verdict)
  return decideAs('Awa', id, verdict)
}

const credit = 'credit clearing_operator_a available 5000'
const excess = 'excess clearing_operator_a unallocated 2000'

test.each([
  ['more than was asked', 7_000n, [credit, excess], 5_000n, 'open'],
  ['what was asked', 5_000n, [credit], 5_000n, undefined],
  ['less than was asked', 4_960n, ['credit clearing_operator_a available 4960'], 4_960n, undefined],
])('an operator says that %s was paid', async (_words, said, lines, available, state) => {
  const { merchant, id } = await paid(said)
  expect(await moved(id)).toEqual(lines)
  expect(await holdingsOf(merchant)).toEqual([available, 0n, 0n])
  expect((await exceptionOf(id))?.state).toBe(state)
  const { rows } = await pool.query(
    `SELECT data->'amount' AS amount, data->'excess' AS excess, data->'unpaid_amount' AS unpaid FROM event
     WHERE type = 'payment_received' AND merchant_id = $1`,
    [merchant.merchantId],
  )
  const told = { excess: said > 5_000n ? 2_000 : null, unpaid: said < 5_000n ? 40 : null }
  expect(rows).toEqual([{ amount: Number(available), ...told }])
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

describe('two people decide', () => {
  test('that it is the merchant’s: credited once, however often at the same moment', async () => {
    const { merchant, id } = await paid(7_000n)
    const open = await listDifferences({ database: db.database })
    expect(open).toContainEqual(
      expect.objectContaining({
        origin: `transaction:${id}`,
        requestedAmount: 5_000n,
        confirmedAmount: 7_000n,
        proposedBy: null,
      }),
    )
    const answers = await Promise.allSettled(Array.from({ length: 8 }, () => decide(id, 'credited')))
    const done = answers.filter(({ status }) => status === 'fulfilled')
    const value = { amount: 2_000n, origin: `transaction:${id}`, state: 'credited' }
    expect(done).toMatchObject([{ value }])
    await expect(decide(id, 'returned')).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    expect(await moved(id)).toEqual([credit, excess, 'excess_credit unallocated available 2000'])
    expect(await holdingsOf(merchant)).toEqual([7_000n, 0n, 0n])
    expect(await exceptionOf(id)).toMatchObject({
      state: 'credited',
      by: 'Awa',
      reason: 'the payer sent it twice',
    })
    expect((await eventTypes(pool, merchant.merchantId)).at(-1)).toBe('payment_excess_credited')
    const day = { from: new Date(0), to: null }
    expect(await readStatement(pool, merchant.merchantId, day)).toMatchObject({
      totalIn: 7_000n,
      totalOut: 0n,
    })
    const { rows } = await pool.query(
      `SELECT actor, operation, target, after FROM audit_entry
       WHERE merchant_id = $1 AND operation = 'difference credited'`,
      [merchant.merchantId],
    )
    const reason = 'the payer sent it twice'
    const after = { state: 'credited', amount: 2_000, decided_by: 'Awa', reason, proposed_by: 'Moussa' }
    expect(rows).toEqual([
      { actor: 'platform', operation: 'difference credited', target: `transaction:${id}`, after },
    ])
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('alone: the excess stays, however often one person decides', async () => {
    const { merchant, id } = await paid(7_000n)
    for (const by of ['Awa', 'Awa', 'AWA', ' Awa  ', 'A wa', 'Ａｗａ\u00a0'])
      expect(await decideAs(by, id, 'credited')).toMatchObject({ state: 'proposed', amount: 2_000n })
    expect(await moved(id)).toEqual([credit, excess])
    expect(await exceptionOf(id)).toMatchObject({ state: 'open', by: null })
    // Another verdict is another proposal, to which the first person may agree.
    expect(await decideAs('Moussa', id, 'returned')).toMatchObject({ state: 'proposed' })
    expect(await holdingsOf(merchant)).toEqual([5_000n, 0n, 0n])
    expect(await decideAs('Awa', id, 'returned')).toMatchObject({ state: 'returned' })
    expect(await moved(id)).toEqual([credit, excess, 'excess_return unallocated clearing_operator_a 2000'])
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('that the operator paid it: refused, because it is no rest of a payment out', async () => {
    const { id } = await paid(7_000n)
    await expect(decideAs('Awa', id, 'paid')).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    expect(await exceptionOf(id)).toMatchObject({ state: 'open' })
  })

  test('that it went back to the payer: the merchant keeps the requested amount', async () => {
    const { merchant, id } = await paid(7_000n)
    await decide(id, 'returned')
    expect(await moved(id)).toEqual([credit, excess, 'excess_return unallocated clearing_operator_a 2000'])
    expect(await holdingsOf(merchant)).toEqual([5_000n, 0n, 0n])
    expect((await eventTypes(pool, merchant.merchantId)).at(-1)).toBe('payment_excess_returned')
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('without a reason, or about no excess: refused, with the field', async () => {
    const { id } = await paid(7_000n)
    const given = { id: String((await exceptionOf(id))?.id), by: 'Awa', reason: ' ' }
    const tried = (raw: Parameters<typeof decideDifference>[2]) =>
      decideDifference({ database: db.database }, 'credited', raw)
    await expect(tried(given)).rejects.toMatchObject({ detail: { problems: [{ field: 'reason' }] } })
    await expect(tried({ ...given, id: undefined })).rejects.toMatchObject({
      detail: { problems: [{ field: 'id' }, { field: 'reason' }] },
    })
    const unknown = { ...given, id: '2147483647', reason: 'why' }
    await expect(tried(unknown)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await exceptionOf(id)).toMatchObject({ state: 'open' })
  })

  test('that it is the merchant’s: a debt of the merchant is paid of it first', async () => {
    const { merchant, id } = await paid(7_000n)
    const { transactionId: other } = await openCollection(pool, merchant)
    await settleMany(pool, [{ id: other, to: 'success' }])
    await openPayout(pool, merchant, { amount: 10_000n })
    await reverseMany(pool, [other])
    expect(await holdingsOf(merchant)).toEqual([0n, 10_000n, 5_000n])
    await decide(id, 'credited')
    expect(await holdingsOf(merchant)).toEqual([0n, 10_000n, 3_000n])
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })
})

describe('the operator takes all of the payment back', () => {
  test('while its excess waits: that goes back too, and no person can decide about it any more', async () => {
    const { merchant, id } = await paid(7_000n)
    expect(await reverseMany(pool, [id])).toMatchObject([{ moved: true, shortfall: 0n }])
    const back = [
      'reverse available clearing_operator_a 5000',
      'excess_return unallocated clearing_operator_a 2000',
    ]
    expect(await moved(id)).toEqual([credit, excess, ...back])
    expect(await holdingsOf(merchant)).toEqual([0n, 0n, 0n])
    expect(await exceptionOf(id)).toMatchObject({ state: 'returned', by: 'operator' })
    await expect(decide(id, 'credited')).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('after its excess was credited: the merchant gives both back', async () => {
    const { merchant, id } = await paid(7_000n)
    await decide(id, 'credited')
    expect(await reverseMany(pool, [id])).toMatchObject([{ moved: true, shortfall: 0n }])
    expect(await holdingsOf(merchant)).toEqual([0n, 0n, 0n])
    expect((await moved(id)).at(-1)).toBe('reverse available clearing_operator_a 7000')
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('at the moment when a person credits it: either way nothing is left over', async () => {
    const all = await Promise.all(Array.from({ length: 12 }, () => paid(7_000n)))
    await Promise.all(
      all.flatMap(({ id }) => [reverseMany(pool, [id]), decide(id, 'credited').catch(() => undefined)]),
    )
    for (const { merchant } of all) expect(await holdingsOf(merchant)).toEqual([0n, 0n, 0n])
    expect(await problemsOf(pool, ...all.map(({ merchant }) => merchant.merchantId))).toEqual([])
  })
})

test('an excess that was credited stays the merchant’s when refunds give the payment back', async () => {
  const { merchant, id } = await paid(7_000n)
  await decide(id, 'credited')
  const { transactionId } = await openDeposit(pool, merchant, { amount: 5_000n, refundOf: id })
  await settleDeposits(pool, [{ id: transactionId, to: 'success' }])
  expect(await holdingsOf(merchant)).toEqual([2_000n, 0n, 0n])
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

describe('the proof finds', () => {
  test.each([
    ['an excess that was never booked', `DELETE FROM ledger_entry WHERE origin = $1 AND step = 'excess'`],
    [
      'another excess than the operator said',
      `UPDATE ledger_entry SET amount = 1 WHERE origin = $1 AND step = 'excess'`,
    ],
    [
      'an excess of another operator',
      `UPDATE ledger_entry SET debit = 'clearing_operator_b' WHERE origin = $1 AND step = 'excess'`,
    ],
    [
      'an excess that went elsewhere',
      `UPDATE ledger_entry SET credit = 'fees' WHERE origin = $1 AND step = 'excess'`,
    ],
    [
      'an excess that was credited, and says that it is open',
      `UPDATE settlement_exception SET state = 'open',
       decided_at = NULL, decided_by = NULL, reason = NULL WHERE 'transaction:' || transaction_id = $1`,
    ],
    [
      'an excess that was decided, and moved nothing',
      `DELETE FROM ledger_entry WHERE origin = $1 AND step = 'excess_credit'`,
    ],
    [
      'an excess without its exception',
      `DELETE FROM settlement_exception WHERE 'transaction:' || transaction_id = $1`,
    ],
    [
      'a credit that is not what the operator said',
      `UPDATE operator_request SET evidence = '{"amount": 6999}'
       WHERE 'transaction:' || transaction_id = $1`,
    ],
  ])('%s', async (_words, statement) => {
    const { merchant, id } = await paid(7_000n)
    await decide(id, 'credited')
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
    await corrupt(db.owner, statement, [`transaction:${id}`])
    expect(await problemsOf(pool, merchant.merchantId)).toContainEqual(
      expect.stringMatching(new RegExp(`transaction:${id}\\b`)),
    )
  })
})

describe('bounds of the database', () => {
  test.each([
    ['a credit beyond what was asked', `UPDATE transaction SET settled_amount = amount + 1 WHERE id = $1`],
    [
      'a movement beyond what a JSON number holds',
      `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
       SELECT merchant_id, 'funding:much', 'fund', 'funding', 'available', 9007199254740992, now()
       FROM transaction WHERE id = $1`,
    ],
    [
      'a balance beyond it',
      `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
       SELECT merchant_id, 'funding:much', 'fund', 'funding', 'available', 9007199254740991, now()
       FROM transaction WHERE id = $1`,
    ],
  ])('%s is refused', async (_words, sql) => {
    const { merchant, id } = await paid(7_000n)
    await expect(db.owner.query(sql, [id])).rejects.toMatchObject({ code: '23514' })
    expect(await holdingsOf(merchant)).toEqual([5_000n, 0n, 0n])
  })
})

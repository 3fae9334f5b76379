import { describe, expect, test } from 'vitest'
import type { Verdict } from '../../../src/resources/differences/list.ts'
import { corrupt } from '../../kit/corrupt.ts'
import { useTestDatabase } from '../../kit/database.ts'
import { decideTogether, type DifferenceColumn, exceptionOf } from '../../kit/differences.ts'
import type { SignedInMerchant } from '../../kit/merchants.ts'
import {
  balanceOf,
  eventTypes,
  fundedMerchant,
  openCollection,
  type OutcomeItem,
  problemsOf,
  settleMany,
} from '../../kit/money.ts'
import { beginRecipients, openBatch, payees, recipientsOf, settleRecipients } from '../../kit/money-bulk.ts'
import {
  beginPayouts,
  depositItem,
  depositMany,
  entriesOf,
  openDeposit,
  openPayout,
  reverseDisbursements,
  settleDeposits,
  settlePayouts,
} from '../../kit/money-out.ts'

// An operator may state that it paid out less than was asked, although it paid all of it. So the rest is no
// money of the merchant's before two people decide.
const db = await useTestDatabase()
const { pool } = db.database

interface PaymentOut {
  /** The prefix of its origin in the ledger, and its column of `settlement_exception`. */
  origin: string
  column: DifferenceColumn
  /** Makes a payment of 2,000 francs that is at the operator. */
  open: (merchant: SignedInMerchant) => Promise<bigint>
  settle: (outcome: OutcomeItem) => Promise<unknown>
  /** The event that tells its payment. */
  told: string
}

const amount = 2_000n
const kinds: Readonly<Record<string, PaymentOut>> = {
  deposit: {
    origin: 'transaction',
    column: 'transaction_id',
    open: async (merchant) => (await openDeposit(pool, merchant, { amount })).transactionId,
    settle: (outcome) => settleDeposits(pool, [{ ...outcome, to: 'success' }]),
    told: 'deposit_completed',
  },
  payout: {
    origin: 'payout',
    column: 'payout_id',
    open: async (merchant) => {
      const id = await openPayout(pool, merchant, { amount })
      await beginPayouts(pool)
      return id
    },
    settle: (outcome) => settlePayouts(pool, [{ ...outcome, to: 'completed' }]),
    told: 'payout_completed',
  },
  recipient: {
    origin: 'recipient',
    column: 'recipient_id',
    open: async (merchant) => {
      const batch = await openBatch(pool, merchant, payees(1, { amount }))
      await beginRecipients(pool)
      return (await recipientsOf(pool, batch))[0]?.id ?? 0n
    },
    settle: (outcome) => settleRecipients(pool, [{ ...outcome, to: 'success' }]),
    told: 'bulk_pay_done',
  },
}

/** A payment of 2,000 francs, of a merchant with 10,000, of which the operator says that 1 franc was paid. */
async function paidShort(kind: PaymentOut) {
  const merchant = await fundedMerchant(pool, 10_000n)
  const { merchantId } = merchant
  const id = await kind.open(merchant)
  await kind.settle({ id, to: 'success', amount: 1n })
  return {
    merchant,
    merchantId,
    id,
    origin: `${kind.origin}:${id}`,
    decide: (verdict: Verdict) => decideTogether(db.database, kind.column, id, verdict),
    holds: () => balanceOf(pool, merchantId),
  }
}

async function lastEvent(merchantId: number, type: string): Promise<Record<string, unknown> | undefined> {
  const { rows } = await pool.query(
    'SELECT data FROM event WHERE merchant_id = $1 AND type = $2 ORDER BY position DESC LIMIT 1',
    [merchantId, type],
  )
  return rows[0]?.data
}

const withheld = ['post reserved > clearing_operator_a 1', 'withhold reserved > unallocated 1999']
/** The entries after the reservation, which a recipient shares with its batch. */
const movesOf = async (origin: string) =>
  (await entriesOf(pool, origin)).filter((line) => !line.startsWith('reserve '))

describe.each(Object.entries(kinds))('a %s that the operator states as 1 franc', (name, kind) => {
  test('takes all that was asked: the rest is withheld, and the merchant is told', async () => {
    const { merchantId, id, origin, holds } = await paidShort(kind)
    expect(await movesOf(origin)).toEqual(withheld)
    expect(await holds()).toEqual({ available: 8_000n, reserved: 0n })
    expect(await exceptionOf(pool, kind.column, id)).toEqual(expect.any(Number))
    const told = await lastEvent(merchantId, kind.told)
    expect(told).toMatchObject(
      name === 'recipient' ? { paid_amount: 1 } : { amount: 1, withheld_amount: 1_999 },
    )
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test('goes back to the merchant once two people say so, once', async () => {
    const { merchantId, origin, decide, holds } = await paidShort(kind)
    const answers = await Promise.allSettled(Array.from({ length: 4 }, () => decide('credited')))
    expect(answers.filter(({ status }) => status === 'fulfilled')).toMatchObject([
      { value: { state: 'credited', origin, amount: 1_999n } },
    ])
    expect(await movesOf(origin)).toEqual([...withheld, 'withheld_credit unallocated > available 1999'])
    expect(await holds()).toEqual({ available: 9_999n, reserved: 0n })
    expect(await lastEvent(merchantId, 'withheld_credited')).toMatchObject({ amount: 1_999 })
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test('was paid once two people say so: nothing is available', async () => {
    const { merchantId, origin, decide, holds } = await paidShort(kind)
    await expect(decide('returned')).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    expect(await decide('paid')).toMatchObject({ state: 'paid' })
    await expect(decide('credited')).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    expect(await movesOf(origin)).toEqual([
      ...withheld,
      'withheld_post unallocated > clearing_operator_a 1999',
    ])
    expect(await holds()).toEqual({ available: 8_000n, reserved: 0n })
    expect(await lastEvent(merchantId, 'withheld_paid')).toMatchObject({ amount: 1_999 })
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test('and takes back: what it stated is available, and people decide about the rest', async () => {
    const { merchantId, origin, decide, holds } = await paidShort(kind)
    expect(await reverseDisbursements(pool, [origin])).toMatchObject([true])
    expect(await holds()).toEqual({ available: 8_001n, reserved: 0n })
    expect(await problemsOf(pool, merchantId)).toEqual([])
    await expect(decide('paid')).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    await decide('credited')
    expect(await holds()).toEqual({ available: 10_000n, reserved: 0n })
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test('and takes back after people found it paid: all of it is available', async () => {
    const { merchantId, origin, decide, holds } = await paidShort(kind)
    await decide('paid')
    expect(await reverseDisbursements(pool, [origin])).toMatchObject([true])
    expect((await movesOf(origin)).at(-1)).toBe('reverse clearing_operator_a > available 2000')
    expect(await holds()).toEqual({ available: 10_000n, reserved: 0n })
    expect(await lastEvent(merchantId, `${name}_reversed`)).toMatchObject({ amount: 2_000 })
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test.each([
    [
      'that was decided, and moved nothing',
      `DELETE FROM ledger_entry WHERE origin = $1 AND step = 'withheld_credit'`,
    ],
    [
      'of another amount than the operator stated',
      `UPDATE ledger_entry SET amount = 1 WHERE origin = $1 AND step = 'withhold'`,
    ],
    [
      'that is credited, and says that it is open',
      `UPDATE settlement_exception SET state = 'open', decided_at = NULL, decided_by = NULL, reason = NULL
       WHERE 'SUBJECT:' || COLUMN = $1`,
    ],
    ['without its exception', `DELETE FROM settlement_exception WHERE 'SUBJECT:' || COLUMN = $1`],
    [
      'of another sum in its exception',
      `UPDATE settlement_exception SET confirmed_amount = 2 WHERE 'SUBJECT:' || COLUMN = $1`,
    ],
  ])('the proof finds a rest %s', async (_words, statement) => {
    const { merchantId, origin, decide } = await paidShort(kind)
    await decide('credited')
    expect(await problemsOf(pool, merchantId)).toEqual([])
    const sql = statement.replace('SUBJECT', kind.origin).replace('COLUMN', kind.column)
    await corrupt(db.owner, sql, [origin])
    expect(await problemsOf(pool, merchantId)).toContainEqual(expect.stringContaining(origin))
  })
})

test('an operator that states 1 franc each time frees nothing: the balance bounds what leaves', async () => {
  const merchant = await fundedMerchant(pool, 10_000n)
  const outcomes = []
  for (let nth = 0; nth < 7; nth++) {
    const [made] = await depositMany(pool, [depositItem(merchant, { amount })])
    outcomes.push(made?.outcome)
    if (made?.transactionId)
      await settleDeposits(pool, [{ id: made.transactionId, to: 'success', amount: 1n }])
  }
  expect(outcomes).toEqual(['made', 'made', 'made', 'made', 'made', 'short', 'short'])
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

describe('a refund that the operator states as 1 franc', () => {
  /** A collection of 5,000 francs, and its whole refund. */
  async function refundedShort() {
    const merchant = await fundedMerchant(pool, 50_000n)
    const { transactionId: original } = await openCollection(pool, merchant)
    await settleMany(pool, [{ id: original, to: 'success' }])
    const { transactionId: id } = await openDeposit(pool, merchant, { amount: 5_000n, refundOf: original })
    await settleDeposits(pool, [{ id, to: 'success', amount: 1n }])
    const again = async (sum: bigint) =>
      (await depositMany(pool, [depositItem(merchant, { amount: sum, refundOf: original })]))[0]?.outcome
    const status = async () =>
      (await pool.query('SELECT status FROM transaction WHERE id = $1', [original])).rows[0]?.status
    return {
      merchant,
      again,
      status,
      decide: (verdict: Verdict) => decideTogether(db.database, 'transaction_id', id, verdict),
    }
  }

  test('cannot be asked again while its rest is withheld', async () => {
    const { merchant, again, status } = await refundedShort()
    expect(await again(1_000n)).toBe('too_large')
    expect(await status()).toBe('success')
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('was paid: the collection is reversed', async () => {
    const { merchant, again, status, decide } = await refundedShort()
    await decide('paid')
    expect(await status()).toBe('reversed')
    expect((await eventTypes(pool, merchant.merchantId)).slice(-2)).toEqual([
      'withheld_paid',
      'payment_reversed',
    ])
    expect(await again(1_000n)).toBe('not_refundable')
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('was not paid: the rest can be refunded, and no more', async () => {
    const { merchant, again, decide } = await refundedShort()
    await decide('credited')
    expect(await again(5_000n)).toBe('too_large')
    expect(await again(4_999n)).toBe('made')
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })
})

describe('the database refuses', () => {
  test('that reserved money is released by the word of an operator', async () => {
    const merchant = await fundedMerchant(pool, 10_000n)
    const { transactionId: id } = await openDeposit(pool, merchant)
    const release = db.owner.query(
      `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
       VALUES (${merchant.merchantId}, 'transaction:${id}', 'release', 'reserved', 'available', 1, now())`,
    )
    await expect(release).rejects.toMatchObject({ constraint: 'ledger_entry_no_release' })
  })

  test.each(['awa', 'Awa ', ' AWA', 'A\u00a0wa'])(
    'a decision that Awa takes alone, as "%s"',
    async (name) => {
      const short = await paidShort(kinds['payout'] as PaymentOut)
      const decision = db.owner.query(
        `UPDATE settlement_exception SET state = 'credited', decided_at = now(), decided_by = $1,
         reason = 'why', proposed_state = 'credited', proposed_by = 'Awa', proposed_reason = 'why',
         proposed_at = now() WHERE payout_id = ${short.id}`,
        [name],
      )
      await expect(decision).rejects.toMatchObject({ constraint: 'settlement_exception_two_people' })
    },
  )
})

import { afterEach, describe, expect, test } from 'vitest'
import { haltPaymentsOut, resumePaymentsOut } from '../../src/ledger/payments-out.ts'
import { borrow } from '../kit/client.ts'
import { deactivate, makeMerchant } from '../kit/merchants.ts'
import { useTestDatabase } from '../kit/database.ts'
import { balanceOf, eventTypes, fundedMerchant, problemsOf } from '../kit/money.ts'
import {
  beginPayouts,
  cancelAllPayouts,
  cancelPayout,
  createPayouts,
  entriesOf,
  openPayout,
  payoutItem,
  requestOf,
  reverseDisbursements,
  settlePayouts,
  watchAvailable,
  writtenRows,
} from '../kit/money-out.ts'

const db = await useTestDatabase()
const { pool } = db.database
/** A second process. */
const other = db.secondProcess()
// The payouts of one test must not be due in the next.
afterEach(async () => {
  await cancelAllPayouts(pool)
  const stray = await strayCounts()
  if (stray.length > 0) throw new Error(`payouts are counted wrong: ${JSON.stringify(stray.map(String))}`)
})

const node = (n: number) => (n % 2 ? pool : other.pool)
const originOf = (id: bigint) => `payout:${id}`
const days = 86_400_000
const tomorrow = () => new Date(Date.now() + days)
/** The service's time, on a day to come. */
const later = (ms: number) =>
  db.owner.query(
    `INSERT INTO sandbox_clock (offset_ms) VALUES ($1) ON CONFLICT (singleton) DO UPDATE SET offset_ms = $1`,
    [ms],
  )

async function statusOf(id: bigint): Promise<string> {
  const { rows } = await pool.query<{ status: string }>(
    `SELECT concat_ws(' ', status, nullif(approval, 'not_required')) AS status FROM payout WHERE id = $1`,
    [id],
  )
  return rows[0]?.status ?? 'gone'
}

/** Where `payout_count` does not say what there is. */
async function strayCounts(): Promise<unknown[]> {
  const { rows } = await db.owner.query(
    `SELECT * FROM (
       SELECT merchant_id, payment_method, status, n FROM payout_count WHERE n <> 0
       EXCEPT ALL SELECT merchant_id, payment_method, status, count(*) FROM payout GROUP BY 1, 2, 3) AS more
     UNION ALL SELECT * FROM (
       SELECT merchant_id, payment_method, status, count(*) FROM payout GROUP BY 1, 2, 3
       EXCEPT ALL SELECT merchant_id, payment_method, status, n FROM payout_count) AS less`,
  )
  return rows
}

describe('a payout', () => {
  test('that goes at once sets its money aside; one for a day to come does not', async () => {
    const merchant = await fundedMerchant(pool, 5_000n)
    const now = await openPayout(pool, merchant, { amount: 2_000n })
    const then = await openPayout(pool, merchant, { amount: 9_000n, scheduledAt: tomorrow() })
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 3_000n, reserved: 2_000n })
    expect([await statusOf(now), await statusOf(then)]).toEqual(['pending', 'pending'])
    expect(await requestOf(pool, 'payout_id', now)).toEqual([])
    expect(await eventTypes(pool, merchant.merchantId)).toEqual(['payout_pending', 'payout_pending'])
    const { rows } = await pool.query<{ data: Record<string, unknown> }>(
      `SELECT data FROM event WHERE merchant_id = $1 ORDER BY id DESC LIMIT 1`,
      [merchant.merchantId],
    )
    expect(rows[0]?.data).toEqual({
      payout_id: Number(then),
      reference: expect.any(String),
      amount: 9_000,
      currency: 'XOF',
      payment_method: 'OperatorA',
      destination_phone: '+22370000001',
      status: 'pending',
      approval: 'not_required',
      scheduled_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$/),
    })
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('that may not be made writes nothing', async () => {
    const merchant = await fundedMerchant(pool, 1_500n)
    const gone = await fundedMerchant(pool, 5_000n)
    await deactivate(pool, gone.merchantId)
    await openPayout(pool, merchant, { reference: 'taken' })
    await haltPaymentsOut(pool, 'drill')
    const before = await writtenRows(db.owner)
    const halted = await createPayouts(pool, [payoutItem(merchant, { amount: 500_000n })])
    await resumePaymentsOut(pool, 'over')
    const answers = await createPayouts(pool, [
      payoutItem(merchant, { apiKeyVersion: 2 }),
      payoutItem(gone),
      payoutItem(merchant, { reference: 'taken', amount: 1_000_000n }),
      payoutItem(merchant),
      payoutItem(await makeMerchant(pool)),
    ])
    expect([...halted, ...answers].map(({ outcome }) => outcome)).toEqual([
      'halted',
      'unauthenticated',
      'unauthenticated',
      'duplicate',
      'short',
      'short',
    ])
    expect(await writtenRows(db.owner)).toEqual(before)
  })

  test('may be scheduled while payments out are halted', async () => {
    const merchant = await fundedMerchant(pool, 0n)
    await haltPaymentsOut(pool, 'drill')
    const items = [payoutItem(merchant, { scheduledAt: tomorrow() }), payoutItem(merchant)]
    const answers = await createPayouts(pool, items)
    await resumePaymentsOut(pool, 'over')
    expect(answers.map(({ outcome }) => outcome)).toEqual(['made', 'halted'])
  })

  test('shares a call in order of arrival: each covered payout leaves less for the next', async () => {
    const merchant = await fundedMerchant(pool, 5_000n)
    const items = [3_000n, 2_500n, 2_000n].map((amount) => payoutItem(merchant, { amount }))
    const outcomes = (await createPayouts(pool, items)).map(({ outcome }) => outcome)
    expect(outcomes).toEqual(['made', 'short', 'made'])
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 0n, reserved: 5_000n })
  })

  test('under the reference of one before it in the call is a duplicate, or fails as that one', async () => {
    const [rich, poor] = [await fundedMerchant(pool, 5_000n), await fundedMerchant(pool, 0n)]
    const answers = await createPayouts(
      pool,
      [rich, rich, poor, poor].map((merchant) => payoutItem(merchant, { reference: 'same' })),
    )
    expect(answers.map(({ outcome }) => outcome)).toEqual(['made', 'duplicate', 'short', 'short'])
  })

  test('waits for a person where its merchant wants that, from the threshold on', async () => {
    const merchant = await fundedMerchant(pool, 100_000n)
    const { merchantId } = merchant
    await db.owner.query(
      'UPDATE merchant SET payouts_require_approval = true, approval_threshold = 5000 WHERE id = $1',
      [merchantId],
    )
    const small = await openPayout(pool, merchant, { amount: 4_999n })
    const large = await openPayout(pool, merchant, { amount: 5_000n })
    expect(await balanceOf(pool, merchantId)).toEqual({ available: 90_001n, reserved: 9_999n })
    expect((await beginPayouts(pool)).map(({ payoutId }) => payoutId)).toEqual([small])
    const { rows } = await pool.query(
      `SELECT approval_digest = payout_digest(merchant_id, payment_method, destination_phone, amount,
         reference,
         scheduled_at) AS same, approval_expires_at - created_at = interval '7 days' AS week
           FROM payout WHERE id = $1`,
      [large],
    )
    expect(rows).toEqual([{ same: true, week: true }])

    await later(6 * days)
    expect((await pool.query('SELECT expire_approvals(10) AS n')).rows).toEqual([{ n: 0 }])
    await later(7 * days + 1_000)
    const expired = await Promise.all([1, 2, 3].map((n) => node(n).query('SELECT expire_approvals(10) AS n')))
    await later(0)
    expect(expired.map(({ rows: [row] }) => row.n).reduce((sum, n) => sum + n)).toBe(1)
    expect(await statusOf(large)).toBe('cancelled expired')
    expect(await entriesOf(pool, originOf(large))).toEqual([
      'reserve available > reserved 5000',
      'void reserved > available 5000',
    ])
    expect((await eventTypes(pool, merchantId)).at(-1)).toBe('payout_cancelled')
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })
})

describe('a payout begins', () => {
  test('once, with its question on record, however many processes look', async () => {
    const merchant = await fundedMerchant(pool, 50_000n)
    const ids = await Promise.all(Array.from({ length: 40 }, () => openPayout(pool, merchant)))
    const rounds = await Promise.all(
      Array.from({ length: 60 }, (_, n) => beginPayouts(node(n), 'OperatorA', 5)),
    )
    const rest = []
    for (let begun = await beginPayouts(pool); begun.length > 0; begun = await beginPayouts(pool))
      rest.push(begun)
    const begun = [...rounds, ...rest].flat()
    expect(begun).toHaveLength(40)
    expect(new Set(begun.map(({ payoutId }) => payoutId))).toEqual(new Set(ids))
    expect(new Set(begun.map(({ requestId }) => requestId)).size).toBe(40)
    expect(await requestOf(pool, 'payout_id', ids[0] ?? 0n)).toEqual([
      {
        kind: 'disburse',
        provider: 'OperatorA',
        amount: 1_000n,
        phone: '+22370000001',
        state: 'sending',
        asked: true,
      },
    ])
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 10_000n, reserved: 40_000n })
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('on its day: then it reserves, and fails where it is not covered', async () => {
    const merchant = await fundedMerchant(pool, 3_500n)
    const scheduledAt = tomorrow()
    const ids = []
    for (const amount of [2_000n, 1_600n, 1_500n])
      ids.push(await openPayout(pool, merchant, { amount, scheduledAt }))
    expect(await beginPayouts(pool)).toEqual([])
    await later(days + 60_000)
    const begun = await beginPayouts(pool)
    await later(0)
    expect(begun.map(({ outcome }) => outcome)).toEqual(['begun', 'short', 'begun'])
    expect(begun.map(({ payoutId }) => payoutId)).toEqual(ids)
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 0n, reserved: 3_500n })
    const { rows } = await pool.query(
      'SELECT status, failure_reason AS reason, settled_amount FROM payout WHERE id = $1',
      [ids[1]],
    )
    expect(rows).toEqual([{ status: 'failed', reason: 'INSUFFICIENT_BALANCE', settled_amount: null }])
    expect(await requestOf(pool, 'payout_id', ids[1] ?? 0n)).toEqual([])
    expect(await entriesOf(pool, originOf(ids[1] ?? 0n))).toEqual([])
    expect((await eventTypes(pool, merchant.merchantId)).slice(3).toSorted()).toEqual([
      'payout_failed',
      'payout_processing',
      'payout_processing',
    ])
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('many payouts of a merchant do not delay the one payout of another', async () => {
    const [many, one] = [await fundedMerchant(pool, 50_000n), await fundedMerchant(pool, 5_000n)]
    for (let n = 0; n < 10; n += 1) await openPayout(pool, many)
    const late = await openPayout(pool, one)
    expect((await beginPayouts(pool, 'OperatorA', 2)).map(({ payoutId }) => payoutId)).toContain(late)
  })

  test('never while payments out are halted, nor for a merchant that is gone', async () => {
    const [merchant, gone] = [await fundedMerchant(pool, 5_000n), await fundedMerchant(pool, 5_000n)]
    const id = await openPayout(pool, merchant)
    await openPayout(pool, gone)
    await deactivate(pool, gone.merchantId)
    expect(await beginPayouts(pool, 'OperatorB')).toEqual([])
    await haltPaymentsOut(pool, 'drill')
    expect(await beginPayouts(pool)).toEqual([])
    await resumePaymentsOut(pool, 'over')
    expect(await beginPayouts(pool)).toMatchObject([{ payoutId: id, outcome: 'begun' }])
    expect(await balanceOf(pool, gone.merchantId)).toEqual({ available: 4_000n, reserved: 1_000n })
  })

  test('not where the halt or the end of its merchant comes while it waits for the money', async () => {
    const [merchant, gone] = [await fundedMerchant(pool, 5_000n), await fundedMerchant(pool, 5_000n)]
    await openPayout(pool, merchant)
    const holding = await borrow(pool)
    const whileItWaits = async (act: () => Promise<unknown>, { merchantId }: { merchantId: number }) => {
      await holding.query('BEGIN')
      await holding.query('SELECT FROM merchant_balance WHERE merchant_id = $1 FOR UPDATE', [merchantId])
      const waiting = beginPayouts(other.pool)
      await db.untilWaiting()
      await act()
      await holding.query('COMMIT')
      return waiting
    }
    // A role that may only read locks nothing: the owner holds it.
    await holding.query('SET ROLE NONE')
    expect(await whileItWaits(() => haltPaymentsOut(db.owner, 'drill'), merchant)).toEqual([])
    await resumePaymentsOut(pool, 'over')
    await openPayout(pool, gone)
    // The end waits for what is under way: that had looked already, and goes.
    const ended: Promise<unknown>[] = []
    const begun = await whileItWaits(() => {
      ended.push(deactivate(pool, gone.merchantId))
      return db.untilWaiting(2)
    }, gone)
    expect(begun).toHaveLength(2)
    await Promise.all(ended)
    await holding.query('SET ROLE payments_service')
    holding.release()
  })
})

describe('a payout ends', () => {
  async function begun(amount = 2_000n) {
    const merchant = await fundedMerchant(pool, 10_000n)
    const id = await openPayout(pool, merchant, { amount })
    expect(await beginPayouts(pool)).toHaveLength(1)
    return { merchant, id, held: () => balanceOf(pool, merchant.merchantId) }
  }

  test.each([
    ['paid', 'completed', null, ['post reserved > clearing_operator_a 2000'], 8_000n],
    [
      'less than asked',
      'completed',
      1_500n,
      ['post reserved > clearing_operator_a 1500', 'withhold reserved > unallocated 500'],
      8_000n,
    ],
    ['more than asked', 'completed', 3_000n, ['post reserved > clearing_operator_a 2000'], 8_000n],
    ['refused', 'failed', null, ['void reserved > available 2000'], 10_000n],
  ])('%s: once, however many answers say so', async (_name, to, amount, moves, available) => {
    const { merchant, id, held } = await begun()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => settlePayouts(node(n), [{ id, to, amount, watchMs: 60_000 }])),
    )
    expect(answers.flat().filter(({ moved }) => moved)).toEqual([{ moved: true, status: to }])
    expect(await entriesOf(pool, originOf(id))).toEqual(['reserve available > reserved 2000', ...moves])
    expect(await held()).toEqual({ available, reserved: 0n })
    expect(await requestOf(pool, 'payout_id', id)).toMatchObject([
      to === 'completed' ? { state: 'settled', asked: true } : { state: 'refused', asked: false },
    ])
    expect(await eventTypes(pool, merchant.merchantId)).toEqual([
      'payout_pending',
      'payout_processing',
      `payout_${to}`,
    ])
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('and comes back once, where the operator gives it back', async () => {
    const { merchant, id, held } = await begun()
    expect(await reverseDisbursements(pool, [originOf(id)])).toEqual([false])
    await settlePayouts(pool, [{ id, to: 'completed', amount: 1_500n, watchMs: 60_000 }])
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        reverseDisbursements(node(n), [originOf(id), originOf(id), 'payout:x']),
      ),
    )
    expect(answers.flat().filter(Boolean)).toEqual([true])
    // The 500 francs that the operator did not confirm stay withheld.
    expect(await held()).toEqual({ available: 9_500n, reserved: 0n })
    expect((await entriesOf(pool, originOf(id))).at(-1)).toBe('reverse clearing_operator_a > available 1500')
    expect(await requestOf(pool, 'payout_id', id)).toMatchObject([{ state: 'settled', asked: false }])
    expect(await statusOf(id)).toBe('completed')
    expect((await eventTypes(pool, merchant.merchantId)).at(-1)).toBe('payout_reversed')
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('cancelled, while it waits: its money is free again; a stranger finds nothing', async () => {
    const [merchant, stranger] = [await fundedMerchant(pool, 5_000n), await fundedMerchant(pool, 0n)]
    const now = await openPayout(pool, merchant)
    const then = await openPayout(pool, merchant, { scheduledAt: tomorrow() })
    expect(await cancelPayout(pool, stranger, now)).toBeNull()
    for (const id of [now, then]) {
      expect(await cancelPayout(pool, merchant, id)).toEqual({ moved: true, status: 'cancelled' })
      expect(await cancelPayout(pool, merchant, id)).toEqual({ moved: false, status: 'cancelled' })
    }
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 5_000n, reserved: 0n })
    expect(await entriesOf(pool, originOf(then))).toEqual([])
    expect(await beginPayouts(pool)).toEqual([])
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('cancelled or begun, never both, where both come at once', async () => {
    const merchant = await fundedMerchant(pool, 40_000n)
    const ids = await Promise.all(Array.from({ length: 40 }, () => openPayout(pool, merchant)))
    const [begins, cancels] = await Promise.all([
      Promise.all(ids.map((_id, n) => beginPayouts(node(n), 'OperatorA', 2))),
      Promise.all(ids.map((id, n) => cancelPayout(node(n + 1), merchant, id))),
    ])
    const sent = begins.flat().map(({ payoutId }) => payoutId)
    const cancelled = ids.filter((_id, n) => cancels[n]?.moved)
    expect(new Set([...sent, ...cancelled]).size).toBe(40)
    expect(sent.length + cancelled.length).toBe(40)
    expect((await balanceOf(pool, merchant.merchantId)).reserved).toBe(BigInt(sent.length) * 1_000n)
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })
})

test('60 callers over two processes and money for 20: exactly 20, and never below zero', async () => {
  const merchant = await fundedMerchant(pool, 20_000n)
  const stop = watchAvailable(db.owner, merchant.merchantId)
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, n) => createPayouts(node(n), [payoutItem(merchant)])),
  )
  const seen = await stop()
  expect(answers.flat().filter(({ outcome }) => outcome === 'made')).toHaveLength(20)
  expect(seen.every((available) => available >= 0n && available <= 20_000n)).toBe(true)
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 0n, reserved: 20_000n })
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

import { describe, expect, test } from 'vitest'
import { borrow } from '../kit/client.ts'
import { counted, many } from '../kit/at-once.ts'
import { useTestDatabase } from '../kit/database.ts'
import { balanceOf, eventTypes, fundedMerchant, problemsOf } from '../kit/money.ts'
import {
  addRecipients,
  beginRecipients,
  cancelBatch,
  createBatch,
  openBatch,
  openDraft,
  payees,
  processBatch,
  recipientsOf,
  settleRecipients,
} from '../kit/money-bulk.ts'
import {
  createPayouts,
  entriesOf,
  payoutItem,
  reverseDisbursements,
  watchAvailable,
} from '../kit/money-out.ts'

const db = await useTestDatabase()
const { pool } = db.database
/** A second process. */
const other = db.secondProcess()

const node = (n: number) => (n % 2 ? pool : other.pool)

async function statusOf(id: number): Promise<string> {
  const { rows } = await pool.query<{ status: string }>('SELECT status FROM batch WHERE id = $1', [id])
  return rows[0]?.status ?? 'gone'
}

/** How often each event of a batch came; progress and drafts are told as often as they come. */
async function told(id: number): Promise<string[]> {
  const { rows } = await db.owner.query<{ type: string }>(
    `SELECT type FROM event WHERE data->>'batch_id' = $1 AND type <> ALL ($2) ORDER BY id`,
    [String(id), ['batch_progress', 'batch_draft']],
  )
  return rows.map(({ type }) => type)
}

describe('a batch is processed', () => {
  test('once, for any number of callers: its whole total is set aside in one movement', async () => {
    const merchant = await fundedMerchant(pool, 20_000n)
    const id = await openDraft(pool, merchant, payees(3, { amount: 2_000n }))
    const answers = await many(20, (n) => processBatch(node(n), merchant, id))
    expect(counted(answers)).toEqual({ processing: 1, conflict: 19 })
    expect(await entriesOf(pool, `batch:${id}`)).toEqual(['reserve available > reserved 6000'])
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 14_000n, reserved: 6_000n })
    expect(await told(id)).toEqual(['batch_processing'])
    await cancelBatch(pool, merchant, id)
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('or not at all: of many batches that the balance covers singly, as many as it covers', async () => {
    const merchant = await fundedMerchant(pool, 10_000n)
    const ids = await many(12, () => openDraft(pool, merchant, payees(3)))
    const stop = watchAvailable(db.owner, merchant.merchantId)
    const answers = await Promise.all(ids.map((id, n) => processBatch(node(n), merchant, id)))
    const seen = await stop()
    expect(counted(answers)).toEqual({ processing: 3, short: 9 })
    expect(seen.every((available) => available >= 1_000n && available <= 10_000n)).toBe(true)
    expect(counted(await Promise.all(ids.map(statusOf)))).toEqual({ processing: 3, draft: 9 })
    // Money that is reserved for a batch covers nothing else.
    const [payout] = await createPayouts(pool, [payoutItem(merchant, { amount: 1_001n })])
    expect(payout?.outcome).toBe('short')
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
    for (const id of ids) await cancelBatch(pool, merchant, id)
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 10_000n, reserved: 0n })
  })

  test('or not at all: where an operator of it is no longer connected', async () => {
    const merchant = await fundedMerchant(pool, 10_000n)
    const id = await openDraft(pool, merchant, [{}, { provider: 'OperatorB' }])
    expect(await processBatch(pool, merchant, id, ['OperatorA', 'OperatorC'])).toBe('unconnected')
    expect([await statusOf(id), await told(id)]).toEqual(['draft', []])
    expect(await processBatch(pool, merchant, id, ['OperatorA', 'OperatorB'])).toBe('processing')
    await cancelBatch(pool, merchant, id)
  })

  test('or cancelled: where both come at once no recipient is left in between', async () => {
    const merchant = await fundedMerchant(pool, 100_000n)
    const ids = await many(24, () => openDraft(pool, merchant, payees(2)))
    const answers = await Promise.all(
      ids.flatMap((id, n) => [processBatch(node(n), merchant, id), cancelBatch(node(n + 1), merchant, id)]),
    )
    expect(answers.filter((each) => typeof each === 'object' && each?.moved)).toHaveLength(24)
    expect(counted(await Promise.all(ids.map(statusOf)))).toEqual({ cancelled: 24 })
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 100_000n, reserved: 0n })
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('with the recipients that were added before, and none is added after', async () => {
    const merchant = await fundedMerchant(pool, 100_000n)
    const ids = await many(12, () => openDraft(pool, merchant, payees(1)))
    const added = await Promise.all(
      ids.map(async (id, n) => {
        const [, ...answers] = await Promise.all([
          processBatch(node(n), merchant, id),
          ...[1, 2, 3].map((each) => addRecipients(node(n + each), merchant, id, payees(1))),
        ])
        return answers.filter((answer) => answer === 'added').length
      }),
    )
    for (const [n, id] of ids.entries()) {
      const total = 1_000 * (1 + (added[n] ?? 0))
      expect(await entriesOf(pool, `batch:${id}`)).toEqual([`reserve available > reserved ${total}`])
      expect(await recipientsOf(pool, id)).toHaveLength(total / 1_000)
    }
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
    for (const id of ids) await cancelBatch(pool, merchant, id)
  })
})

/** A batch of which so many were sent. */
async function underWay(count: number, sent = count, amount = 2_000n) {
  const merchant = await fundedMerchant(pool, 20_000n)
  const { merchantId } = merchant
  const id = await openBatch(pool, merchant, payees(count, { amount }))
  expect(await beginRecipients(pool, { room: sent })).toHaveLength(sent)
  const ids = (await recipientsOf(pool, id)).map((each) => each.id)
  const first = ids[0] ?? 0n
  const cancel = (from = pool) => cancelBatch(from, merchant, id)
  return { merchant, merchantId, id, ids, first, cancel, held: () => balanceOf(pool, merchantId) }
}

describe('a recipient ends', () => {
  test.each([
    ['paid', 'success', null, ['post reserved > clearing_operator_a 2000'], 18_000n],
    [
      'less than asked',
      'success',
      1_500n,
      ['post reserved > clearing_operator_a 1500', 'withhold reserved > unallocated 500'],
      18_000n,
    ],
    ['more than asked', 'success', 3_000n, ['post reserved > clearing_operator_a 2000'], 18_000n],
    ['refused', 'failed', null, ['void reserved > available 2000'], 20_000n],
  ])('%s: once, however many answers say so', async (_name, to, amount, moves, available) => {
    const { merchantId, id, first, held } = await underWay(1)
    const answers = await many(20, (n) => settleRecipients(node(n), [{ id: first, to, amount }]))
    expect(answers.flat().filter(({ moved }) => moved)).toEqual([{ moved: true, status: to }])
    expect(await entriesOf(pool, `recipient:${first}`)).toEqual(moves)
    expect(await held()).toEqual({ available, reserved: 0n })
    expect(await statusOf(id)).toBe(to === 'success' ? 'completed' : 'failed')
    expect(await told(id)).toEqual(['batch_processing', 'bulk_pay_done'])
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test('one way, where two outcomes come at once or in one call', async () => {
    const { merchantId, id, ids, held } = await underWay(8)
    const answers = await Promise.all(
      ids.flatMap((each, n) => [
        settleRecipients(node(n), [
          { id: each, to: 'success' },
          { id: each, to: 'failed' },
        ]),
        settleRecipients(node(n + 1), [{ id: each, to: 'failed' }]),
      ]),
    )
    expect(answers.flat().filter(({ moved }) => moved)).toHaveLength(8)
    const paid = (await recipientsOf(pool, id)).filter(({ status }) => status === 'success').length
    expect(await held()).toEqual({ available: 20_000n - BigInt(paid) * 2_000n, reserved: 0n })
    expect(await told(id)).toEqual(['batch_processing', 'bulk_pay_done'])
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test('not by the refusal of a send that was sent again', async () => {
    const { merchantId, first } = await underWay(1)
    const again = await borrow(db.owner)
    await again.query('BEGIN')
    await again.query('UPDATE operator_request SET attempt = 2 WHERE recipient_id = $1', [first])
    const old = settleRecipients(pool, [{ id: first, to: 'failed', source: 'initiate', attempt: 1 }])
    await db.untilWaiting()
    await again.query('COMMIT')
    again.release()
    expect(await old).toEqual([{ moved: false, status: 'processing' }])
    const newest = [{ id: first, to: 'failed', source: 'initiate', attempt: 2 }]
    expect(await settleRecipients(pool, newest)).toEqual([{ moved: true, status: 'failed' }])
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test('never before it was sent, nor after it was cancelled', async () => {
    const { merchantId, ids, cancel } = await underWay(2, 1)
    const [sent = 0n, waits = 0n] = ids
    expect(await settleRecipients(pool, [{ id: waits, to: 'success' }])).toMatchObject([{ moved: false }])
    await cancel()
    expect(await settleRecipients(pool, [{ id: waits, to: 'success' }])).toMatchObject([{ moved: false }])
    expect(await settleRecipients(pool, [{ id: sent, to: 'success' }])).toMatchObject([{ moved: true }])
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test('and comes back once, where the operator gives it back: also of a batch that is over', async () => {
    const { merchantId, id, first, held } = await underWay(2)
    const origin = `recipient:${first}`
    expect(await reverseDisbursements(pool, [origin])).toEqual([false])
    await settleRecipients(pool, [{ id: first, to: 'success', amount: 1_500n }])
    const answers = await many(20, (n) => reverseDisbursements(node(n), [origin, origin, 'recipient:x']))
    expect(answers.flat().filter(Boolean)).toEqual([true])
    // The 500 francs that the operator did not confirm stay withheld.
    expect(await held()).toEqual({ available: 17_500n, reserved: 2_000n })
    expect((await entriesOf(pool, origin)).at(-1)).toBe('reverse clearing_operator_a > available 1500')
    const [, last = 0n] = (await recipientsOf(pool, id)).map((each) => each.id)
    await settleRecipients(pool, [{ id: last, to: 'success' }])
    expect(await reverseDisbursements(pool, [`recipient:${last}`])).toEqual([true])
    expect(await held()).toEqual({ available: 19_500n, reserved: 0n })
    expect(await statusOf(id)).toBe('completed')
    expect(counted(await eventTypes(pool, merchantId))['recipient_reversed']).toBe(2)
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })
})

describe('a batch ends with its last recipient', () => {
  const ends = ['success', 'failed', 'cancelled'] as const
  type End = (typeof ends)[number]
  const all: End[][] = ends.flatMap((a) => [
    [a],
    ...ends.flatMap((b) => [[a, b], ...ends.map((c) => [a, b, c])]),
  ])
  // Cancelled recipients were not sent: in the order of their turns they come last.
  const cases = all.filter((each) => !/cancelled,(success|failed)/.test(each.join()))
  const becomes = (fates: readonly End[]) => {
    if (fates.includes('cancelled')) return 'cancelled'
    if (!fates.includes('failed')) return 'completed'
    return fates.includes('success') ? 'partially_completed' : 'failed'
  }

  test.each(
    cases.flatMap((fates) => [
      { fates, late: false },
      { fates, late: true },
    ]),
  )('$fates, cancelled after the others ended: $late', async ({ fates, late }) => {
    const sent = fates.filter((fate) => fate !== 'cancelled')
    const { merchantId, id, ids, cancel, held } = await underWay(fates.length, sent.length)
    const settle = async () => {
      for (const [n, to] of sent.entries()) await settleRecipients(pool, [{ id: ids[n] ?? 0n, to }])
    }
    const stop = async () => (fates.includes('cancelled') ? cancel() : null)
    for (const act of late ? [settle, stop] : [stop, settle]) await act()
    expect(await statusOf(id)).toBe(becomes(fates))
    expect(await told(id)).toEqual(['batch_processing', 'bulk_pay_done'])
    const paid = BigInt(sent.filter((fate) => fate === 'success').length) * 2_000n
    expect(await held()).toEqual({ available: 20_000n - paid, reserved: 0n })
    expect(await cancel()).toMatchObject({ moved: false })
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test('once, where it is cancelled, begun and settled at one moment', async () => {
    const runs = await Promise.all(Array.from({ length: 12 }, () => underWay(3, 0)))
    await beginRecipients(pool, { room: 12 })
    await Promise.all(
      runs.flatMap(({ ids, cancel }, n) => [
        cancel(node(n)),
        beginRecipients(node(n + 1), { room: 3 }),
        settleRecipients(
          node(n),
          ids.map((each, ordinal) => ({ id: each, to: ordinal === 1 ? 'failed' : 'success' })),
        ),
      ]),
    )
    for (const { merchantId, id, ids, held } of runs) {
      await settleRecipients(
        pool,
        ids.map((each) => ({ id: each, to: 'success' })),
      )
      expect(await told(id)).toEqual(['batch_processing', 'bulk_pay_done'])
      expect((await held()).reserved).toBe(0n)
      expect(await problemsOf(pool, merchantId)).toEqual([])
    }
  })
})

describe('recipients who failed', () => {
  test('are paid anew by one batch, for any number of callers, until that is cancelled', async () => {
    const { merchant, merchantId, id, ids, cancel } = await underWay(4, 3)
    const retry = (from = pool) => createBatch(from, merchant, [], { retried: id })
    expect(await retry()).toMatchObject({ outcome: 'open' })
    // A cancelled recipient is not retried either.
    await cancel()
    expect(await retry()).toMatchObject({ outcome: 'open' })
    await settleRecipients(pool, [
      { id: ids[0] ?? 0n, to: 'failed' },
      { id: ids[1] ?? 0n, to: 'success' },
      { id: ids[2] ?? 0n, to: 'failed' },
    ])
    const answers = await many(12, (n) => retry(node(n)))
    expect(counted(answers.map((answer) => answer?.outcome))).toEqual({ made: 1, retried: 11 })
    const [made, ...rest] = new Set(answers.map((answer) => answer?.batchId))
    expect(rest).toEqual([])
    expect(await recipientsOf(pool, made ?? 0)).toMatchObject([
      { status: 'pending', amount: 2_000n },
      { status: 'pending', amount: 2_000n },
    ])
    await cancelBatch(pool, merchant, made ?? 0)
    expect(await retry()).toMatchObject({ outcome: 'made' })
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test('are never in two batches: one that was cancelled while it paid is the only one', async () => {
    const { merchant, merchantId, id, ids } = await underWay(3)
    await settleRecipients(
      pool,
      ids.map((each) => ({ id: each, to: 'failed' })),
    )
    const retry = async (of: number) => (await createBatch(pool, merchant, [], { retried: of }))?.outcome
    const made = await createBatch(pool, merchant, [], { retried: id })
    const first = made?.batchId ?? 0
    await processBatch(pool, merchant, first)
    const [paid, failed] = await recipientsOf(pool, first)
    expect(await beginRecipients(pool, { room: 2 })).toHaveLength(2)
    await cancelBatch(pool, merchant, first)
    expect(await retry(id)).toBe('retried')
    await settleRecipients(pool, [{ id: failed?.id ?? 0n, to: 'failed' }])
    await settleRecipients(pool, [{ id: paid?.id ?? 0n, to: 'success' }])
    expect(await statusOf(first)).toBe('cancelled')
    expect(await retry(id)).toBe('retried')
    expect(await retry(first)).toBe('made')
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test.each([1, 2, 3, 4])('are each paid once at most, for any fate of their retries (%i)', async (seed) => {
    const { merchant, merchantId, id, ids } = await underWay(6, 6, 1_000n)
    await settleRecipients(
      pool,
      ids.map((each) => ({ id: each, to: 'failed' })),
    )
    // Each recipient of these batches is one of the six: at any time each is in one batch at most in which
    // it is paid, or may be.
    let state = seed
    const chance = (n: number) => (state = (state * 16_807) % 2_147_483_647) % n
    const made = [id]
    const any = () => made[chance(made.length)] ?? id
    const acts = [
      async (n: number) => {
        const retry = await createBatch(node(n), merchant, [], { retried: any() })
        if (retry?.outcome === 'made') made.push(retry.batchId ?? 0)
      },
      (n: number) => processBatch(node(n), merchant, made.at(-1) ?? id),
      (n: number) => beginRecipients(node(n), { room: 1 + chance(3) }),
      (n: number) => cancelBatch(node(n), merchant, any()),
      async (n: number) => {
        const { rows } = await pool.query<{ id: bigint }>(
          `SELECT id FROM batch_recipient WHERE merchant_id = $1 AND status = 'processing'
           ORDER BY id LIMIT 2`,
          [merchantId],
        )
        const to = chance(4) === 0 ? 'success' : 'failed'
        if (rows.length > 0)
          await settleRecipients(
            node(n),
            rows.map((each) => ({ id: each.id, to })),
          )
      },
    ]
    for (let round = 0; round < 40; round += 1) {
      await many(4, async (n) => acts[chance(acts.length)]?.(n))
      const { rows } = await pool.query<{ hopes: number }>(
        `SELECT count(*)::int AS hopes FROM batch_recipient
         WHERE merchant_id = $1 AND status IN ('pending', 'processing', 'success')`,
        [merchantId],
      )
      expect(rows[0]?.hopes).toBeLessThanOrEqual(6)
    }
    for (const each of made) await cancelBatch(pool, merchant, each)
    expect(await problemsOf(pool, merchantId)).toEqual([])
  })

  test('are none where all were paid; another merchant finds no batch', async () => {
    const { merchant, id, first } = await underWay(1)
    await settleRecipients(pool, [{ id: first, to: 'success' }])
    expect(await createBatch(pool, merchant, [], { retried: id })).toMatchObject({ outcome: 'nothing' })
    const stranger = await fundedMerchant(pool, 20_000n)
    expect(await createBatch(pool, stranger, [], { retried: id })).toBeUndefined()
    expect(await processBatch(pool, stranger, id)).toBeUndefined()
    expect(await addRecipients(pool, stranger, id, payees(1))).toBeUndefined()
    expect(await cancelBatch(pool, stranger, id)).toBeNull()
  })
})

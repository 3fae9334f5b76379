import { beforeEach, describe, expect, test } from 'vitest'
import { openSharedStatements } from '../../src/database/shared-statements.ts'
import { type CallbackRecord, recordCallback } from '../../src/requests/record-callback.ts'
import { claimDue, claimOne, claimSend, recordRequest, type RequestRecord } from '../../src/requests/store.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { openCollection, settleMany } from '../kit/money.ts'
import { useTestDatabase } from '../kit/database.ts'

const db = await useTestDatabase()
const { pool } = db.database
/** A second process. */
const other = db.secondProcess()
const sharedStatements = openSharedStatements(pool)
const merchant = await makeMerchant(pool)

/** Where the two processes record callbacks. */
const here = { sharedStatements, database: db.database }
const there = { sharedStatements: openSharedStatements(other.pool), database: other }

// Every test begins with nothing due.
beforeEach(() => db.owner.query('UPDATE operator_request SET next_check_at = NULL'))

/** Columns keep milliseconds, rounded: now could be a moment ahead. */
const passed = `fence_until = now() - interval '1 ms'`
const due = `next_check_at = now() - interval '1 ms'`

async function change(id: bigint, set: string): Promise<void> {
  await db.owner.query(`UPDATE operator_request SET ${set} WHERE id = $1`, [id])
}

async function standing(id: bigint) {
  const { rows } = await db.owner.query(
    `SELECT state, attempt, handle, next_check_at IS NOT NULL AS open, next_check_at <= now() AS due,
       round(extract(epoch FROM next_check_at - now()))::int AS "nextS", fence_until <= now() AS unfenced,
       accepted_at IS NOT NULL AS accepted, check_count AS checks
     FROM operator_request WHERE id = $1`,
    [id],
  )
  return rows[0]
}

function note(id: bigint, more: Partial<RequestRecord>): Promise<void> {
  return recordRequest(sharedStatements, {
    id,
    attempt: 1,
    state: 'doubt',
    handle: {},
    nextCheckMs: 60_000,
    paymentUrl: null,
    ...more,
  })
}

function callback(more: Partial<CallbackRecord>): CallbackRecord {
  return {
    provider: 'OperatorA',
    dedupeKey: crypto.randomUUID(),
    body: '{}',
    requestId: null,
    correlationId: null,
    says: 'settled',
    ...more,
  }
}

describe('claiming', () => {
  test('two processes race for 60 due requests: each goes to one taker, oldest first', async () => {
    const open = await Promise.all(Array.from({ length: 60 }, () => openCollection(pool, merchant)))
    for (const [age, { requestId }] of open.entries()) {
      await change(requestId, `next_check_at = now() - ${100 - age} * interval '1 s'`)
    }
    const first = await claimDue(pool, 'OperatorA', 5)
    expect(new Set(first.map(({ id }) => id))).toEqual(new Set(open.slice(0, 5).map((o) => o.requestId)))
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, n) => claimDue(n % 2 ? pool : other.pool, 'OperatorA', 7)),
    )
    for (const taken of claims) expect(taken.length).toBeLessThanOrEqual(7)
    const ids = [...first, ...claims.flat()].map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    while (ids.length < 60) {
      const more = await claimDue(other.pool, 'OperatorA', 7)
      expect(more.length).toBeGreaterThan(0)
      ids.push(...more.map(({ id }) => id))
    }
    expect(new Set(ids).size).toBe(60)
    expect(await claimDue(pool, 'OperatorA', 64)).toEqual([])
  })

  test('a status check and the schedule race: one gets it, and no other for three seconds', async () => {
    const { transactionId, requestId } = await openCollection(pool, merchant)
    await change(requestId, due)
    const takers = await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        const from = n % 2 ? pool : other.pool
        if (n % 4 < 2) return (await claimOne(from, transactionId)) ? 1 : 0
        return (await claimDue(from, 'OperatorA', 10)).length
      }),
    )
    expect(takers.reduce((sum, taken) => sum + taken, 0)).toBe(1)
    const { rows } = await db.owner.query(
      `SELECT query_after BETWEEN now() + interval '2 s' AND now() + interval '3 s' AS held
       FROM operator_request WHERE id = $1`,
      [requestId],
    )
    expect(rows).toEqual([{ held: true }])
    expect(await claimOne(pool, transactionId)).toBeNull()
    await change(requestId, due)
    expect(await claimDue(pool, 'OperatorA', 10)).toEqual([])
    await change(requestId, `query_after = now() - interval '1 ms'`)
    expect(await claimOne(pool, transactionId)).toMatchObject({ id: requestId, checkCount: 2 })
  })

  test.each(['due', 'one'])('a taker that dies leaves it due again in half a minute (%s)', async (by) => {
    const { transactionId, requestId } = await openCollection(pool, merchant)
    await change(requestId, `next_check_at = now() - interval '1 s'`)
    await (by === 'due' ? claimDue(pool, 'OperatorA', 10) : claimOne(pool, transactionId))
    expect(await standing(requestId)).toMatchObject({ due: false, checks: 1 })
    expect((await standing(requestId))?.nextS).toBeGreaterThan(25)
    expect((await standing(requestId))?.nextS).toBeLessThanOrEqual(30)
  })

  test('carries all columns that asking and resending take', async () => {
    const { transactionId, requestId, correlationId } = await openCollection(pool, merchant)
    await note(requestId, { state: 'accepted', handle: { operatorRef: 'OP-7' } })
    expect(await claimOne(pool, transactionId)).toMatchObject({
      id: requestId,
      merchantId: merchant.merchantId,
      subject: 'collection',
      subjectId: transactionId,
      provider: 'OperatorA',
      kind: 'collect',
      amount: 5_000n,
      phone: '+22370000001',
      handle: { correlationId, clientRef: correlationId, operatorRef: 'OP-7' },
      state: 'accepted',
      attempt: 1,
      checkCount: 1,
      status: 'pending',
      request: {},
    })
  })

  test('leaves requests of other operators, and those not due or over, alone', async () => {
    const later = await openCollection(pool, merchant)
    const elsewhere = await openCollection(pool, merchant, { provider: 'OperatorC' })
    const over = await openCollection(pool, merchant)
    await settleMany(pool, [{ id: over.transactionId, to: 'success' }])
    await change(elsewhere.requestId, due)
    expect(await claimDue(pool, 'OperatorA', 10)).toEqual([])
    expect(await claimOne(pool, over.transactionId)).toBeNull()
    expect(await claimOne(pool, later.transactionId)).not.toBeNull()
  })
})

describe('the fence', () => {
  test('no process sends before its end', async () => {
    const { requestId } = await openCollection(pool, merchant)
    expect(await claimSend(pool, { id: requestId, attempt: 1 })).toBeNull()
    expect(await standing(requestId)).toMatchObject({ attempt: 1, state: 'sending' })
  })

  test('after its end one of many processes sends, and a new fence stands', async () => {
    const { requestId } = await openCollection(pool, merchant)
    await change(requestId, passed)
    const rights = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        claimSend(n % 2 ? pool : other.pool, { id: requestId, attempt: 1 }),
      ),
    )
    expect(rights.filter((attempt) => attempt !== null)).toEqual([2])
    expect(await standing(requestId)).toMatchObject({ attempt: 2, state: 'sending', unfenced: false })
  })

  test.each(['accepted', 'settled', 'refused', 'closed'])(
    'keeps a %s request from a resend',
    async (state) => {
      const { requestId } = await openCollection(pool, merchant)
      await change(requestId, `${passed}, state = '${state}'`)
      expect(await claimSend(pool, { id: requestId, attempt: 1 })).toBeNull()
    },
  )

  test('gives no right to a process that knows only an earlier attempt', async () => {
    const { requestId } = await openCollection(pool, merchant)
    await change(requestId, passed)
    expect(await claimSend(pool, { id: requestId, attempt: 1 })).toBe(2)
    await change(requestId, passed)
    expect(await claimSend(pool, { id: requestId, attempt: 1 })).toBeNull()
    expect(await claimSend(pool, { id: requestId, attempt: 2 })).toBe(3)
  })

  test('opens at once when the send never left', async () => {
    const { requestId } = await openCollection(pool, merchant)
    await note(requestId, { state: 'unsent' })
    expect(await claimSend(pool, { id: requestId, attempt: 1 })).toBe(2)
  })

  test('stays shut when the proof is about an earlier send', async () => {
    const { requestId } = await openCollection(pool, merchant)
    await change(requestId, passed)
    expect(await claimSend(pool, { id: requestId, attempt: 1 })).toBe(2)
    // The first sender wakes up late and says that its own call never left; the second is on its way.
    await note(requestId, { state: 'unsent', attempt: 1 })
    expect(await standing(requestId)).toMatchObject({ state: 'sending', unfenced: false })
    expect(await claimSend(pool, { id: requestId, attempt: 2 })).toBeNull()
  })
})

describe('a note', () => {
  test('does not reopen a settled request', async () => {
    const { transactionId, requestId } = await openCollection(pool, merchant)
    await settleMany(pool, [{ id: transactionId, to: 'success' }])
    await note(requestId, { state: 'accepted', nextCheckMs: 1_000, handle: { operatorRef: 'late' } })
    await note(requestId, { state: 'doubt' })
    expect(await standing(requestId)).toMatchObject({ state: 'settled', open: false })
  })

  test.each([
    ['refused', { to: 'failed' }],
    ['closed', { to: 'failed', source: 'service' }],
  ])('of a %s request that goes on at its operator asks about it late, and not again', async (state, end) => {
    const { transactionId, requestId } = await openCollection(pool, merchant)
    await settleMany(pool, [{ id: transactionId, ...end }])
    await note(requestId, { state: 'accepted', nextCheckMs: 1_000 })
    expect(await standing(requestId)).toMatchObject({ state, nextS: 3_600 })
    await note(requestId, { state: 'doubt', nextCheckMs: 1_000 })
    expect(await standing(requestId)).toMatchObject({ state, nextS: 3_600 })
    await note(requestId, { state: 'accepted', nextCheckMs: null })
    expect(await standing(requestId)).toMatchObject({ state, open: false })
  })

  test('keeps the time of the first acceptance, the handle and the page', async () => {
    const { transactionId, requestId } = await openCollection(pool, merchant, { provider: 'OperatorB' })
    await note(requestId, { state: 'accepted', handle: { sessionId: 's-1' }, paymentUrl: 'https://pay/1' })
    await note(requestId, { state: 'accepted', handle: { operatorRef: 'OP' } })
    expect(await standing(requestId)).toMatchObject({
      state: 'accepted',
      accepted: true,
      handle: { sessionId: 's-1', operatorRef: 'OP' },
    })
    const { rows } = await pool.query('SELECT payment_url FROM transaction WHERE id = $1', [transactionId])
    expect(rows).toEqual([{ payment_url: 'https://pay/1' }])
  })

  test('of doubt takes nothing from an acceptance, before it, after it or in the same call', async () => {
    const same = await openCollection(pool, merchant)
    await Promise.all([
      note(same.requestId, { state: 'accepted', handle: { sessionId: 's-2' }, paymentUrl: 'https://pay/2' }),
      note(same.requestId, { state: 'doubt' }),
    ])
    const after = await openCollection(pool, merchant)
    await note(after.requestId, { state: 'accepted' })
    await note(after.requestId, { state: 'doubt' })
    expect(await standing(same.requestId)).toMatchObject({ state: 'accepted', handle: { sessionId: 's-2' } })
    expect(await standing(after.requestId)).toMatchObject({ state: 'accepted' })
  })

  test('that nothing was learnt changes only when it is asked again', async () => {
    const open = await openCollection(pool, merchant)
    await note(open.requestId, { state: null, nextCheckMs: 5_000 })
    expect(await standing(open.requestId)).toMatchObject({ state: 'sending', open: true, nextS: 5 })
    const over = await openCollection(pool, merchant)
    await settleMany(pool, [{ id: over.transactionId, to: 'failed' }])
    await note(over.requestId, { state: null, nextCheckMs: 5_000 })
    expect(await standing(over.requestId)).toMatchObject({ state: 'refused', open: true, nextS: 5 })
  })
})

describe('a callback', () => {
  test('is kept once, however often and from however many sides it comes', async () => {
    const { requestId } = await openCollection(pool, merchant)
    const same = callback({ requestId, dedupeKey: 'same' })
    const answers = await Promise.all(
      Array.from({ length: 31 }, (_, n) => recordCallback(n % 2 ? here : there, same)),
    )
    expect(answers.filter((answer) => answer.isNew)).toHaveLength(1)
    expect(new Set(answers.map((answer) => answer.requestId))).toEqual(new Set([requestId]))
    expect(await standing(requestId)).toMatchObject({ due: true })
    expect(await recordCallback(here, { ...same, provider: 'OperatorC' })).toMatchObject({ isNew: true })
  })

  test('names its request by address, by correlation id, or by both when they agree', async () => {
    const a = await openCollection(pool, merchant)
    const b = await openCollection(pool, merchant)
    const find = async (more: Partial<CallbackRecord>) =>
      (await recordCallback(here, callback(more))).requestId
    expect(await find({ requestId: a.requestId })).toBe(a.requestId)
    expect(await find({ correlationId: a.correlationId })).toBe(a.requestId)
    expect(await find({ requestId: a.requestId, correlationId: a.correlationId })).toBe(a.requestId)
    expect(await find({ requestId: a.requestId, correlationId: b.correlationId })).toBeNull()
    expect(await find({ provider: 'OperatorD', requestId: a.requestId })).toBeNull()
    expect(await find({})).toBeNull()
  })

  test('reopens a request that ended unpaid: it is asked about while its operator has it open', async () => {
    const { transactionId, requestId } = await openCollection(pool, merchant)
    await settleMany(pool, [{ id: transactionId, to: 'failed' }])
    expect(await standing(requestId)).toMatchObject({ state: 'refused', open: false })
    await recordCallback(here, callback({ requestId }))
    const claimed = await claimDue(pool, 'OperatorA', 10)
    expect(claimed).toMatchObject([{ id: requestId, state: 'refused', status: 'failed' }])
    await note(requestId, { state: 'accepted' })
    expect(await standing(requestId)).toMatchObject({ state: 'refused', nextS: 3_600 })
  })

  test('about a paid request asks nothing', async () => {
    const { transactionId, requestId } = await openCollection(pool, merchant)
    await settleMany(pool, [{ id: transactionId, to: 'success' }])
    expect(await recordCallback(here, callback({ requestId }))).toMatchObject({
      isNew: true,
      requestId,
      claimed: null,
    })
    expect(await standing(requestId)).toMatchObject({ state: 'settled', open: false })
  })

  test.each([
    ['goes on', 60_000],
    ['is over', null],
  ])(
    'that comes while the operator is being asked is not lost when the answer says it %s',
    async (_what, ms) => {
      const { requestId } = await openCollection(pool, merchant)
      await change(requestId, due)
      expect(await claimDue(pool, 'OperatorA', 10)).toHaveLength(1)
      await recordCallback(here, callback({ requestId }))
      // The answer is older than the callback.
      await note(requestId, { state: 'accepted', nextCheckMs: ms })
      expect(await standing(requestId)).toMatchObject({ due: true })
    },
  )

  test('that comes before the answer to the first send is not lost', async () => {
    const { requestId } = await openCollection(pool, merchant)
    await recordCallback(here, callback({ requestId }))
    await note(requestId, { state: 'accepted', nextCheckMs: 60_000 })
    expect(await standing(requestId)).toMatchObject({ due: true, state: 'accepted' })
  })
})

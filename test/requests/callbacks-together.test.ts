import { expect, test, vi } from 'vitest'
import type { CallbackHint } from '../../src/operators/operator.ts'
import { checkRequest } from '../../src/requests/check.ts'
import { type CallbackRecord, recordAndAsk, recordCallback } from '../../src/requests/record-callback.ts'
import { claimBounds, claimDue } from '../../src/requests/store.ts'
import { limits } from '../../src/shared/limits.ts'
import { borrow } from '../kit/client.ts'
import { openCollection } from '../kit/money.ts'
import {
  answers,
  type Opened,
  scripted,
  script,
  stands,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

useScriptedOperator()

let numbers = 0

function callback({ requestId }: Pick<Opened, 'requestId'>, more: Partial<CallbackRecord> = {}) {
  const says: CallbackHint['says'] = 'settled'
  const dedupeKey = `${requestId}:${(numbers += 1)}`
  const named = { requestId, correlationId: null }
  return { provider: 'OperatorA', dedupeKey, body: '{}', says, ...named, ...more } satisfies CallbackRecord
}

/** Collections that their operator has accepted, and that are not due for an hour. */
async function open(count: number): Promise<Opened[]> {
  const opened = await Promise.all(
    Array.from({ length: count }, () => openCollection(scripted.pool, scripted.merchant)),
  )
  await scripted.db.owner.query(
    `UPDATE operator_request SET state = 'accepted', next_check_at = service_now() + interval '1 h'
     WHERE merchant_id = $1`,
    [scripted.merchant.merchantId],
  )
  return opened
}

async function openOne(): Promise<Opened> {
  const [opened] = await open(1)
  if (!opened) throw new Error('none opened')
  return opened
}

async function settled(): Promise<void> {
  const { inFlight } = scripted.services
  while (inFlight.size > 0) await Promise.allSettled(inFlight.values())
}

/** Returns how often each function was called during `work`. */
async function callsDuring(work: () => Promise<unknown>): Promise<Record<string, number>> {
  const query = vi.spyOn(scripted.pool, 'query')
  try {
    await work()
    const names = query.mock.calls.map(([asked]) => (asked as unknown as { name: string }).name)
    return Object.fromEntries(
      [...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]),
    )
  } finally {
    query.mockRestore()
  }
}

test('callbacks of a moment are recorded, claimed and asked about with one statement', async () => {
  const opened = await open(20)
  script.query = opened.map(() => answers.settled)
  const calls = await callsDuring(async () => {
    await Promise.all(opened.map((each) => recordAndAsk(scripted.services, callback(each))))
    await settled()
  })
  expect(calls).toMatchObject({ record_callbacks: 1 })
  expect(Object.keys(calls)).not.toContain('claim_requests')
  expect(script.asked).toBe(20)
  for (const each of opened) expect(await stands(each)).toMatchObject({ status: 'success', nextS: null })
})

test('the process dies before the question: another one asks after the fence, and settles', async () => {
  const opened = await openOne()
  const { claimed } = await recordCallback(scripted.services, callback(opened), true)
  expect(claimed).toMatchObject({
    id: opened.requestId,
    checkCount: 1,
    claimed: 'settled',
    status: 'pending',
  })
  // This process does nothing more. While its question could be under way, no other process asks.
  const ours = async () =>
    (await claimDue(scripted.pool, 'OperatorA', 1_000)).filter(({ id }) => id === opened.requestId)
  expect(await ours()).toEqual([])
  await scripted.clock.advance(limits.operatorFenceMs)
  expect(await ours()).toEqual([])
  await scripted.db.owner.query(
    `UPDATE operator_request SET query_after = query_after - $2 * interval '1 ms' WHERE id = $1`,
    [opened.requestId, claimBounds.operatorQueryIntervalMs],
  )
  const [request] = await ours()
  if (!request) throw new Error('not due')
  script.query = [answers.settled]
  await checkRequest(scripted.services, request)
  expect(await stands(opened)).toMatchObject({ status: 'success' })
})

test('a request of a question less than three seconds ago becomes due, and is not claimed', async () => {
  const opened = await openOne()
  expect((await recordCallback(scripted.services, callback(opened), true)).claimed).not.toBeNull()
  const second = await recordCallback(scripted.services, callback(opened, { says: 'refused' }), true)
  expect(second).toMatchObject({ isNew: true, claimed: null })
  expect((await stands(opened)).nextS).toBeLessThanOrEqual(0.01)
})

test('copies of a callback in one statement: one is new, and one claims', async () => {
  const opened = await openOne()
  const same = callback(opened)
  const kept = await Promise.all(
    Array.from({ length: 5 }, () => recordCallback(scripted.services, same, true)),
  )
  expect(kept.map(({ isNew }) => isNew)).toEqual([true, false, false, false, false])
  expect(kept.filter(({ claimed }) => claimed !== null)).toHaveLength(1)
})

test('several callbacks about one request in one statement: the last one counts', async () => {
  const opened = await openOne()
  const [first, second] = await Promise.all([
    recordCallback(scripted.services, callback(opened, { says: 'pending' }), true),
    recordCallback(scripted.services, callback(opened, { says: 'refused' }), true),
  ])
  expect([first.isNew, first.claimed, second.isNew]).toEqual([true, null, true])
  expect(second.claimed).toMatchObject({ id: opened.requestId, claimed: 'refused', checkCount: 1 })
})

test('each callback gets its own answer: unknown, of another operator, by either name', async () => {
  const [a, b, c] = (await open(3)) as [Opened, Opened, Opened]
  const nothing = { requestId: null, correlationId: null }
  const kept = await Promise.all(
    [
      callback(a, { provider: 'OperatorB' }),
      callback(a, nothing),
      callback(b, { ...nothing, correlationId: b.correlationId }),
      callback(c, { correlationId: b.correlationId }),
      callback({ requestId: 999_999_999n }),
      callback(c, { correlationId: c.correlationId }),
    ].map((each) => recordCallback(scripted.services, each, true)),
  )
  expect(kept.map(({ requestId }) => requestId)).toEqual([null, null, b.requestId, null, null, c.requestId])
  expect(kept.map(({ claimed }) => claimed?.id ?? null)).toEqual(kept.map(({ requestId }) => requestId))
  expect(kept.every(({ isNew }) => isNew)).toBe(true)
})

test('a request that another session has delays its own callback only, and no copy is lost', async () => {
  const [held, free] = (await open(2)) as [Opened, Opened]
  const holder = await borrow(scripted.db.owner)
  await holder.query('BEGIN')
  await holder.query('SELECT FROM operator_request WHERE id = $1 FOR UPDATE', [held.requestId])
  const waiting = recordCallback(scripted.services, callback(held, { dedupeKey: 'held' }), true)
  const through = await recordCallback(scripted.services, callback(free), true)
  expect(through).toMatchObject({ isNew: true, claimed: { id: free.requestId } })
  await scripted.db.untilWaiting()
  const { rows } = await scripted.db.owner.query(`SELECT FROM operator_callback WHERE dedupe_key = 'held'`)
  expect(rows).toEqual([])
  await holder.query('COMMIT')
  expect(await waiting).toMatchObject({ isNew: true, claimed: { id: held.requestId } })
  holder.release()
})

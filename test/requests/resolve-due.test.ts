import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import type { Services } from '../../src/context.ts'
import { type Schedule, startJobs } from '../../src/jobs/schedule.ts'
import type { OperatorHandle, QueryOutcome } from '../../src/operators/operator.ts'
import type { Operator } from '../../src/operators/registry.ts'
import { dueRequestsMax, resolveJob } from '../../src/requests/check-slots.ts'
import { deadlineIn } from '../../src/operators/call-limits.ts'
import { sendRequest } from '../../src/requests/send.ts'
import { type CallbackRecord, recordAndAsk } from '../../src/requests/record-callback.ts'
import { jobBounds, serviceJobs } from '../../src/resources/jobs.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { openCollection } from '../kit/money.ts'
import { useBounds } from '../kit/use-bounds.ts'
import { answers, claim, hour, named, says, scripted, useScriptedOperator } from '../kit/scripted-operator.ts'

useScriptedOperator()
// The timer never fires within a test: only free places make the job take more.
useBounds(jobBounds, { resolveEveryMs: hour })

/** An operator that answers each question when the test says so. */
let questions: ((answer: QueryOutcome) => void)[]
let arrivals: (() => void)[]
let schedule: Schedule
/** How often the job looked for due requests. */
let looks: number
let answersAtOnce: boolean

beforeEach(async () => {
  await scripted.db.owner.query('UPDATE operator_request SET next_check_at = NULL')
  questions = []
  arrivals = []
  looks = 0
  answersAtOnce = false
})
afterEach(async () => {
  for (const answer of questions) answer(answers.settled)
  await schedule.close()
})

const operator = {
  provider: 'OperatorA',
  capabilities: { createIsIdempotent: true, callbacks: 'none', disburseIsSynchronous: false },
  callbackUrl: (id: bigint) => `https://us.example/callbacks/${id}`,
  collect: async () => ({ ...says.accepted, notify: 'polling' }),
  query: (_kind: string, handle: OperatorHandle) =>
    new Promise<QueryOutcome>((resolve) => {
      const answer = (outcome: QueryOutcome) => resolve(named(outcome, handle))
      questions.push(answer)
      if (answersAtOnce) answer(answers.settled)
      for (const arrive of arrivals.splice(0)) arrive()
    }),
} as unknown as Operator

async function asked(count: number): Promise<void> {
  while (questions.length < count) await new Promise<void>((arrive) => arrivals.push(arrive))
}

async function openDue(count: number): Promise<void> {
  for (let left = count; left > 0; left -= 50) {
    const some = Array.from({ length: Math.min(left, 50) })
    await Promise.all(some.map(() => openCollection(scripted.pool, scripted.merchant)))
  }
  await scripted.db.owner.query(
    `UPDATE operator_request SET state = 'accepted', next_check_at = now() - interval '1 s'
     WHERE next_check_at IS NOT NULL`,
  )
}

function services(): Services {
  return {
    ...scripted.services,
    operators: { list: () => [{ provider: 'OperatorA' }], find: () => operator },
    notifyJob: (name: string) => schedule.notify(name),
  } as unknown as Services
}

function callbackOf(requestId: bigint): CallbackRecord {
  const subject = { requestId, correlationId: null }
  return { provider: 'OperatorA', dedupeKey: String(requestId), body: '{}', says: 'settled', ...subject }
}

function startResolving(): void {
  const job = serviceJobs(services()).find(({ name }) => name === resolveJob('OperatorA'))
  if (!job) throw new Error('no such job')
  const counted = { ...job, run: () => ((looks += 1), job.run()) }
  schedule = startJobs([counted], createLog('silent'))
}

test('places that become free together are all taken again, without waiting for the timer', async () => {
  await openDue(dueRequestsMax + 8)
  startResolving()
  await asked(dueRequestsMax)
  for (const answer of questions.slice(0, 8)) answer(answers.settled)
  await asked(dueRequestsMax + 8)
  expect(questions).toHaveLength(dueRequestsMax + 8)
})

test('one slow answer delays no other request: all due ones are asked about in one go', async () => {
  const all = dueRequestsMax * 4
  await openDue(all)
  startResolving()
  await asked(1)
  // The first question gets no answer; the others are answered as they come.
  for (let next = 1; next < all; next += 1) {
    await asked(next + 1)
    questions[next]?.(answers.settled)
  }
  expect(questions).toHaveLength(all)
})

test('300 due requests are all asked about without the timer, by far fewer statements', async () => {
  const all = 300
  await openDue(all)
  answersAtOnce = true
  startResolving()
  await asked(all)
  await allChecked()
  expect(questions).toHaveLength(all)
  expect(await countWhere("state = 'settled'")).toBe(all)
  expect(looks).toBeLessThan(all / 4)
})

test('300 payments at an operator that is polled are settled soon after their customers paid', async () => {
  const all = 300
  answersAtOnce = true
  startResolving()
  const opened = await Promise.all(
    Array.from({ length: all }, () => openCollection(scripted.pool, scripted.merchant)),
  )
  const requests = await Promise.all(opened.map(claim))
  await scripted.db.owner.query('UPDATE operator_request SET query_after = NULL, check_count = 0')
  await Promise.all(
    requests.map((request) => sendRequest(services(), request, 'background', deadlineIn(10_000))),
  )
  await asked(all)
  await allChecked()
  expect(questions).toHaveLength(all)
  expect(await countWhere("state = 'settled' AND check_count = 1")).toBe(all)
  expect(looks).toBeLessThan(all / 4)
})

test('callbacks beyond the free slots wait behind the requests due before, not for the timer', async () => {
  await openDue(dueRequestsMax * 2)
  await scripted.db.owner.query(
    `UPDATE operator_request SET next_check_at = NULL WHERE id IN (
       SELECT id FROM operator_request WHERE next_check_at IS NOT NULL ORDER BY id DESC LIMIT $1)`,
    [dueRequestsMax - 8],
  )
  const { rows } = await scripted.db.owner.query<{ id: bigint }>(
    'SELECT id FROM operator_request WHERE merchant_id = $1 AND next_check_at IS NULL ORDER BY id',
    [scripted.merchant.merchantId],
  )
  startResolving()
  await asked(dueRequestsMax)
  // 8 more were due before any callback; no slot is free.
  await Promise.all(rows.map(({ id }) => recordAndAsk(services(), callbackOf(id))))
  expect(questions).toHaveLength(dueRequestsMax)
  expect(await countWhere('check_count = 0 AND next_check_at <= service_now()')).toBe(dueRequestsMax)
  for (const answer of questions.slice(0, 8)) answer(answers.settled)
  await asked(dueRequestsMax + 8)
  const asks = rows.map(({ id }) => id)
  const { rows: early } = await scripted.db.owner.query(
    'SELECT FROM operator_request WHERE id = ANY ($1) AND check_count > 0',
    [asks],
  )
  expect(early).toEqual([])
  answersAtOnce = true
  for (const answer of questions) answer(answers.settled)
  await asked(dueRequestsMax * 2)
  await allChecked()
  expect(await countWhere("state = 'settled'")).toBe(dueRequestsMax * 2)
})

test('an operator out of reach is asked no faster than the timer says', async () => {
  await openDue(dueRequestsMax * 2)
  startResolving()
  await asked(dueRequestsMax)
  for (const answer of questions.splice(0)) answer(answers.unreachable)
  await allChecked()
  expect(
    await countWhere("check_count = 1 AND next_check_at BETWEEN now() AND now() + interval '10 s'"),
  ).toBe(dueRequestsMax)
  expect([looks, questions]).toEqual([1, []])
})

test('when no more requests are due one look learns that, and further answers start none', async () => {
  await openDue(dueRequestsMax)
  startResolving()
  await asked(dueRequestsMax)
  questions[0]?.(answers.settled)
  await eventually(() => expect(looks).toBe(2))
  for (const answer of questions) answer(answers.settled)
  await allChecked()
  expect([looks, questions.length]).toEqual([2, dueRequestsMax])
})

/** Waits until every answer was noted and the job knows of it. */
async function allChecked(): Promise<void> {
  while (scripted.services.inFlight.size > 0) await Promise.allSettled(scripted.services.inFlight.values())
  await turn()
}

async function countWhere(where: string): Promise<number> {
  const { rows } = await scripted.db.owner.query<{ count: bigint }>(
    `SELECT count(*) FROM operator_request WHERE merchant_id = $1 AND ${where}`,
    [scripted.merchant.merchantId],
  )
  return Number(rows[0]?.count)
}

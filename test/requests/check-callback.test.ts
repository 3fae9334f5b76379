import { expect, test } from 'vitest'
import { borrow } from '../kit/client.ts'
import { eventually } from '../kit/eventually.ts'
import type { Services } from '../../src/context.ts'
import type {
  CallbackHint,
  OperationKind,
  OperatorHandle,
  QueryOutcome,
} from '../../src/operators/operator.ts'
import { recordCallback } from '../../src/requests/record-callback.ts'
import { recordRequest } from '../../src/requests/store.ts'
import { resolveJob } from '../../src/requests/check-slots.ts'
import { serviceJobs } from '../../src/resources/jobs.ts'
import { checkRequest } from '../../src/requests/check.ts'
import { settleTransaction } from '../../src/resources/transactions/settle.ts'
import {
  accepted,
  answers,
  ask,
  claim,
  credited,
  evidence,
  type Opened,
  scripted,
  script,
  stands,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

useScriptedOperator()

let callbacks = 0
const callback = ({ requestId }: Opened, says: CallbackHint['says']) =>
  recordCallback(scripted.services, {
    provider: 'OperatorA',
    dedupeKey: `callback ${(callbacks += 1)}`,
    body: '{}',
    requestId,
    correlationId: null,
    says,
  })
const isDue = async (opened: Opened) => ((await stands(opened)).nextS ?? 1) <= 0

/** While its operator is asked, a callback comes; then the operator's answer, which is older. */
async function crossing(says: CallbackHint['says'], answer: QueryOutcome): Promise<Opened> {
  const opened = await accepted()
  const request = await claim(opened)
  await callback(opened, says)
  script.query = [answer]
  await checkRequest(scripted.services, request)
  return opened
}

test('a payment taken back while it is noted as paid is asked about, and reversed', async () => {
  const opened = await crossing('reversed', answers.settled)
  expect(await stands(opened)).toMatchObject({ status: 'success', nextS: expect.any(Number) })
  expect((await ask(opened, answers.reversed)).status).toBe('reversed')
  expect(await stands(opened)).toMatchObject({ nextS: null })
  expect(await credited()).toBe(0n)
})

test('a payment paid while it is noted as refused is asked about, and late', async () => {
  const opened = await crossing('settled', answers.refused)
  expect(await stands(opened)).toMatchObject({ status: 'failed', nextS: expect.any(Number) })
  expect((await ask(opened, answers.settled)).status).toBe('success')
  expect(await stands(opened)).toMatchObject({ late: true, nextS: null })
  expect(await credited()).toBe(5_000n)
})

test.each([
  ['settled', answers.settled],
  ['refused', answers.refused],
] as const)('a callback that agrees with the answer (%s) causes no question', async (says, answer) => {
  expect(await stands(await crossing(says, answer))).toMatchObject({ nextS: null })
})

/** Runs `write` against a transaction that is held, and meanwhile a callback is recorded. */
async function overtaken(write: (opened: Opened) => Promise<unknown>, says: CallbackHint['says']) {
  const opened = await accepted()
  const holder = await borrow(scripted.db.owner)
  await holder.query('BEGIN')
  await holder.query('SELECT FROM transaction WHERE id = $1 FOR UPDATE', [opened.transactionId])
  const written = write(opened)
  await scripted.db.untilWaiting()
  await callback(opened, says)
  await holder.query('COMMIT')
  await written
  holder.release()
  return opened
}

test('a callback that overtakes a settlement that waits is not forgotten', async () => {
  const paid = { status: 'success', source: 'query', evidence, watchMs: null } as const
  const settle = ({ transactionId }: Opened) => settleTransaction(scripted.services, transactionId, paid)
  expect(await isDue(await overtaken(settle, 'reversed'))).toBe(true)
})

test('a callback that overtakes a note that waits is not forgotten', async () => {
  const note = ({ requestId }: Opened) =>
    recordRequest(scripted.services.sharedStatements, {
      id: requestId,
      attempt: 1,
      state: 'accepted',
      handle: {},
      nextCheckMs: 60_000,
      paymentUrl: 'https://pay.example/1',
    })
  expect(await isDue(await overtaken(note, 'settled'))).toBe(true)
})

test.each(['reversed', 'settled', 'unreachable', 'refused'] as const)(
  'a reversed payment is asked about once for a callback, for any answer (%s)',
  async (kind) => {
    const opened = await accepted()
    await ask(opened, answers.settled)
    await callback(opened, 'reversed')
    await ask(opened, answers.reversed)
    await callback(opened, 'refused')
    expect(await isDue(opened)).toBe(true)
    expect((await ask(opened, answers[kind])).status).toBe('reversed')
    expect(await stands(opened)).toMatchObject({ status: 'reversed', nextS: null })
  },
)

test('a callback has a question of its own where an older one is under way', async () => {
  const opened = await accepted()
  const slow = Promise.withResolvers<QueryOutcome>()
  const own = { ...answers.settled.evidence, operatorRef: `OP-1 ${opened.correlationId}` }
  const questions = [slow.promise, Promise.resolve({ ...answers.settled, evidence: own })]
  const operator = Object.assign(Object.create(scripted.services.operators.find('OperatorA')), {
    // Requests of an earlier test may be due as well.
    query: (_kind: OperationKind, { correlationId }: OperatorHandle) =>
      correlationId === opened.correlationId ? questions.shift() : Promise.resolve(answers.pending),
  })
  const operators = { list: () => [operator], find: () => operator }
  const services = { ...scripted.services, operators, notifyJob: () => undefined } as unknown as Services
  const job = serviceJobs(services).find(({ name }) => name === resolveJob('OperatorA'))
  const letIntervalPass = () =>
    scripted.db.owner.query(
      // Now, rounded to a millisecond, could be half of one ahead.
      `UPDATE operator_request SET query_after = NULL, next_check_at = service_now() - interval '1 s'
       WHERE id = $1`,
      [opened.requestId],
    )
  await letIntervalPass()
  await job?.run()
  await letIntervalPass()
  await callback(opened, 'settled')
  await job?.run()
  slow.resolve(answers.pending)
  await eventually(async () => expect((await stands(opened)).status).toBe('success'))
})

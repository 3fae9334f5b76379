import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Services } from '../../src/context.ts'
import type { Clock } from '../../src/shared/clock.ts'
import { serviceJobs } from '../../src/resources/jobs.ts'
import { checkPayment } from '../../src/resources/transactions/check.ts'
import { openCollection } from '../kit/money.ts'
import {
  accepted,
  answers,
  ask,
  hour,
  minute,
  says,
  scripted,
  script,
  stands,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'
import { begun, kinds, send, stateOf, turn } from '../kit/scripted-disbursement.ts'

// The clock of this process is wrong, the database's is right: no age and no deadline may be computed from
// it.

useScriptedOperator()
let right: Clock
beforeEach(() => {
  right = scripted.services.clock
})
afterEach(() => {
  scripted.services.clock = right
})

function skewClock(ms: number): void {
  scripted.services.clock = { now: () => new Date(right.now().getTime() + ms) }
}

test('25 h ahead: a new payment stays pending when its status is asked', async () => {
  const reference = 'wait-1'
  const opened = await openCollection(scripted.pool, scripted.merchant, { reference })
  skewClock(25 * hour)
  script.query = [answers.pending]
  expect((await checkPayment(scripted.services, reference, null)).state).toBe('pending')
  expect(await stands(opened)).toMatchObject({ status: 'pending' })
})

test('25 h ahead: a payment that the operator has no record of is sent again', async () => {
  const opened = await accepted()
  await scripted.db.owner.query(
    `UPDATE operator_request SET state = 'doubt', fence_until = now() - interval '1 s' WHERE id = $1`,
    [opened.requestId],
  )
  skewClock(25 * hour)
  script.collect = [says.accepted]
  await ask(opened, answers.absent)
  expect(script.sent).toHaveLength(1)
})

test.each(kinds)('25 h ahead: a %s that never left is sent again, not given up', async (kind) => {
  const it = await begun(kind)
  await send(it, says.notSent)
  skewClock(25 * hour)
  await turn(it, { disburse: [says.accepted] })
  expect(script.paidOut).toHaveLength(2)
  expect(await stateOf(it)).toMatchObject({ status: 'processing', state: 'accepted' })
})

test("25 h behind: a payment that has expired by the database's clock ends", async () => {
  const opened = await accepted(24 * hour + minute)
  skewClock(-25 * hour)
  expect(await ask(opened, answers.pending)).toMatchObject({ status: 'expired' })
})

test('a process whose clock is wrong raises an alarm each minute, with the difference', async () => {
  const error = vi.fn<(...line: unknown[]) => void>()
  const services = {
    ...scripted.services,
    operators: { list: () => [] },
    log: { error },
  } as unknown as Services
  const job = serviceJobs(services).find(({ name }) => name === 'clock.compare')
  expect(job?.everyMs).toBe(minute)
  await job?.run()
  expect(error).not.toHaveBeenCalled()
  const real = Date.now
  const shifted = vi.spyOn(Date, 'now').mockImplementation(() => real() + hour)
  await job?.run()
  shifted.mockRestore()
  expect(error.mock.calls).toEqual([
    [{ skewMs: expect.any(Number) }, "alarm: the clock of this process is 3600 s ahead of the database's"],
  ])
})

import { setImmediate as tick } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { singleFlight } from '../../src/shared/single-flight.ts'
import { deadlineIn } from '../../src/operators/call-limits.ts'
import { sendRequest } from '../../src/requests/send.ts'
import { checkRequest } from '../../src/requests/check.ts'
import { checkPayment, withdrawPayment } from '../../src/resources/transactions/check.ts'
import { openCollection } from '../kit/money.ts'
import {
  answers,
  claim,
  credited,
  minute,
  says,
  scripted,
  script,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

useScriptedOperator()

let references = 0

async function collection() {
  const reference = `check-${(references += 1)}`
  return { reference, ...(await openCollection(scripted.pool, scripted.merchant, { reference })) }
}

test('100 checks at once lead to one query, and all get its answer', async () => {
  const { reference } = await collection()
  script.query = [answers.settled]
  const checks = await Promise.all(
    Array.from({ length: 100 }, () => checkPayment(scripted.services, reference, null)),
  )
  expect(new Set(checks.map(({ state }) => state))).toEqual(new Set(['success']))
  expect(script.asked).toBe(1)
  expect(await credited()).toBe(5_000n)
})

test('within three seconds the record answers', async () => {
  const { reference } = await collection()
  script.query = [answers.pending]
  expect((await checkPayment(scripted.services, reference, null)).state).toBe('pending')
  expect((await checkPayment(scripted.services, reference, null)).state).toBe('pending')
  expect(script.asked).toBe(1)
})

test('an operator out of reach is no failure of the payment', async () => {
  const { reference } = await collection()
  script.query = [answers.unreachable]
  await expect(checkPayment(scripted.services, reference, null)).rejects.toMatchObject({
    code: 'OPERATOR_UNREACHABLE',
  })
})

test('a payment that never left and ends at this query reports its end', async () => {
  const [paid, refused, expired] = [await neverLeft(), await neverLeft(), await neverLeft()]
  script.collect = [says.settled, says.refused]
  expect((await checkPayment(scripted.services, paid.reference, null)).state).toBe('success')
  expect((await checkPayment(scripted.services, refused.reference, null)).state).toBe('failed')
  await scripted.clock.advance(2 * minute)
  expect((await checkPayment(scripted.services, expired.reference, null)).state).toBe('failed')
})

test('a withdrawn payment is not sent again: it ends unsent, or stays in doubt', async () => {
  const unsent = await neverLeft()
  expect(await withdrawPayment(scripted.services, unsent.transactionId)).toBe('failed')
  const doubted = await collection()
  await scripted.db.owner.query("UPDATE operator_request SET fence_until = now() - interval '1 s'")
  script.query = [answers.absent]
  const sent = script.sent.length
  expect(await withdrawPayment(scripted.services, doubted.transactionId)).toBe('pending')
  expect(script.sent.length).toBe(sent)
  expect(await withdrawPayment(scripted.services, doubted.transactionId)).toBeNull()
})

/** A collection with a prompt that provably did not reach the operator, due for a query. */
async function neverLeft() {
  const opened = await collection()
  script.collect = [says.notSent]
  await sendRequest(scripted.services, await claim(opened), 'interactive', deadlineIn(10_000))
  await scripted.db.owner.query('UPDATE operator_request SET query_after = NULL WHERE id = $1', [
    opened.requestId,
  ])
  return opened
}

test('a final payment is answered from the record', async () => {
  const { reference } = await collection()
  script.query = [answers.refused]
  expect((await checkPayment(scripted.services, reference, null)).state).toBe('failed')
  expect((await checkPayment(scripted.services, reference, null)).state).toBe('failed')
  expect(script.asked).toBe(1)
})

test('a check during the lease of the schedule does not keep the schedule from asking', async () => {
  const opened = await collection()
  const request = await claim(opened)
  script.query = [answers.settled]
  const { inFlight } = scripted.services
  const asking = checkPayment(scripted.services, opened.reference, null)
  // The status check now tries to claim the request that the schedule has claimed.
  while (inFlight.size === 0) await tick()
  await singleFlight(scripted.services, `check:transaction:${opened.transactionId}`, () =>
    checkRequest(scripted.services, request),
  )
  await asking
  expect(script.asked).toBe(1)
  expect(await credited()).toBe(5_000n)
})

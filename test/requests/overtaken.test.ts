import { describe, expect, test } from 'vitest'
import type { InitiateOutcome } from '../../src/operators/operator.ts'
import type { OpenRequest } from '../../src/requests/open-request.ts'
import { deadlineIn } from '../../src/operators/call-limits.ts'
import { sendRequest } from '../../src/requests/send.ts'
import { checkRequest } from '../../src/requests/check.ts'
import { subjects } from '../../src/resources/subjects.ts'
import {
  begun,
  complaints,
  errorsDuring,
  floatEmpty,
  kinds,
  send,
  stateOf,
  take,
  turn,
} from '../kit/scripted-disbursement.ts'
import {
  answers,
  ask,
  claim,
  day,
  fresh,
  lowerFence,
  minute,
  says,
  scripted,
  script,
  stands,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

useScriptedOperator()

const waiting = { status: 'processing', held: '15000 + 5000' }
const sendLate = (request: OpenRequest) =>
  sendRequest(scripted.services, request, 'interactive', deadlineIn(10_000))

/**
 * A process that gives a request up takes the right to, and stalls before it records that; the next statement
 * waits.
 */
async function stalled(request: OpenRequest) {
  const { sharedStatements } = scripted.services
  const there = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const waits = {
    ...sharedStatements,
    run: (...item: Parameters<typeof sharedStatements.run>) => {
      there.resolve()
      return gate.promise.then(() => sharedStatements.run(...item))
    },
  }
  const end = checkRequest(
    { ...scripted.services, sharedStatements: waits as typeof sharedStatements },
    request,
  )
  await there.promise
  return () => {
    gate.resolve()
    return end
  }
}

describe.each(kinds)('a %s that was sent again, and taken, while its first sender stood still', (subject) => {
  async function overtaken() {
    const it = await begun(subject)
    const first = { ...(await take(it)), state: 'sending' as const }
    await lowerFence(it)
    await turn(it, { query: [answers.absent], disburse: [says.accepted] })
    expect(await stateOf(it)).toMatchObject({ ...waiting, state: 'accepted', attempt: 2 })
    return { it, first }
  }

  test.each<[string, InitiateOutcome]>([
    ['refused', says.refused],
    ['turned away by an empty float', floatEmpty],
  ])('%s the first time: it waits for the second, is asked about and paid once', async (_what, late) => {
    const { it, first } = await overtaken()
    script.disburse = [late]
    expect(await sendLate(first)).toMatchObject({ status: 'processing', refusal: null })
    expect(await stateOf(it)).toMatchObject({ ...waiting, state: 'accepted', nextS: expect.any(Number) })
    expect(await errorsDuring(() => turn(it, { query: [answers.settled] }))).toEqual([])
    expect(await stateOf(it)).toMatchObject({ state: 'settled', held: '15000 + 0' })
    expect(await complaints(it)).toEqual([])
  })

  test('brought together with its payment: it is paid', async () => {
    const { it, first } = await overtaken()
    const { refusal } = says.refused
    const { settle, success } = subjects[subject]
    const own = { ...answers.settled.evidence, operatorRef: `${subject} brought together` }
    const both = [
      { status: 'failed', source: 'initiate', refusal, attempt: first.attempt } as const,
      { status: 'success', source: 'query', evidence: own, watchMs: null } as const,
    ].map((outcome) => settle(scripted.services, it.id, outcome))
    expect(await Promise.all(both)).toMatchObject([{ moved: false }, { moved: true, status: success }])
  })

  test('given up too late by the process with the right to: it waits all the same', async () => {
    const it = await begun(subject)
    await send(it, says.notSent)
    await scripted.clock.advance(2 * day)
    const goOn = await stalled(await take(it))
    await lowerFence(it)
    await turn(it, { query: [answers.absent], disburse: [says.accepted] })
    expect(await goOn()).toMatchObject({ status: 'processing' })
    expect(await stateOf(it)).toMatchObject({ ...waiting, state: 'accepted', attempt: 3 })
    expect(await complaints(it)).toEqual([])
  })
})

test('a refusal of the very send that the operator is known to have: it is asked', async () => {
  const it = await begun('payout')
  const first = { ...(await take(it)), state: 'sending' as const }
  await turn(it, { query: [answers.pending] })
  script.disburse = [says.refused]
  expect(await sendLate(first)).toMatchObject({ status: 'processing', refusal: null })
  expect(await stateOf(it)).toMatchObject({ ...waiting, state: 'accepted', attempt: 1 })
})

describe('a collection that was sent again, and taken, while its first sender stood still', () => {
  test('refused the first time: it waits for the second', async () => {
    const opened = await fresh()
    await lowerFence(opened)
    script.collect = [says.accepted]
    await ask(opened, answers.absent)
    script.collect = [says.refused]
    expect(await sendLate(opened.request)).toMatchObject({ status: 'pending', refusal: null })
    expect(await stands(opened)).toMatchObject({ status: 'pending', state: 'accepted', attempt: 2 })
    expect(await ask(opened, answers.settled)).toMatchObject({ status: 'success' })
  })

  test('given up too late: it waits for the second', async () => {
    const opened = await fresh()
    script.collect = [says.notSent]
    await sendLate(opened.request)
    const young = await claim(opened)
    await scripted.clock.advance(minute)
    const goOn = await stalled(await claim(opened))
    await lowerFence(opened)
    script.collect = [says.accepted]
    // It is as young as its taker knows.
    const doubt = {
      ...young,
      state: 'doubt',
      attempt: 2,
      claimedAt: new Date(),
      createdAt: scripted.clock.now(),
    } as const
    script.query = [answers.absent]
    await checkRequest(scripted.services, doubt)
    expect(await goOn()).toMatchObject({ status: 'pending' })
    expect(await stands(opened)).toMatchObject({ status: 'pending', state: 'accepted', attempt: 3 })
  })
})

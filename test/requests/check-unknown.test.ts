import { describe, expect, test } from 'vitest'
import { deadlineIn } from '../../src/operators/call-limits.ts'
import { sendRequest } from '../../src/requests/send.ts'
import { checkRequest } from '../../src/requests/check.ts'
import { openCollection } from '../kit/money.ts'
import {
  answers,
  ask,
  claim,
  credited,
  day,
  doubtful,
  fresh,
  lowerFence,
  minute,
  type Opened,
  says,
  scripted,
  script,
  second,
  seconds,
  stands,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

useScriptedOperator()

describe('an unknown outcome', () => {
  test('behind its fence: asked again soon, not sent', async () => {
    const opened = await doubtful(10 * second)
    await ask(opened, answers.absent)
    expect(script.sent).toEqual([])
    expect(await stands(opened)).toMatchObject({ status: 'pending', state: 'doubt', nextS: seconds(2, 8) })
  })

  test('in its first minute: sent once more, under the same correlation id', async () => {
    const opened = await doubtful(40 * second)
    await lowerFence(opened)
    script.collect = [says.accepted]
    await ask(opened, answers.absent)
    expect(script.sent).toMatchObject([{ attempt: 2, handle: { correlationId: opened.correlationId } }])
    expect(await stands(opened)).toMatchObject({ status: 'pending', state: 'accepted', attempt: 2 })
  })

  test('and from two sides at once: sent once', async () => {
    const opened = await doubtful(40 * second)
    await lowerFence(opened)
    const [a, b] = [await claim(opened), await claim(opened)]
    script.query = [answers.absent, answers.absent]
    script.collect = [says.accepted]
    await Promise.all([checkRequest(scripted.services, a), checkRequest(scripted.services, b)])
    expect(script.sent).toHaveLength(1)
  })

  test('the schedule comes back between the end of the fence and the end of the minute', async () => {
    const opened = await doubtful(0)
    script.collect = [says.accepted]
    let age = 0
    while (script.sent.length === 0 && age < 70) {
      const wait = Math.ceil((await stands(opened)).nextS ?? 0)
      await scripted.clock.advance(wait * second)
      age += wait
      if (age >= 30) await lowerFence(opened)
      await ask(opened, answers.absent)
    }
    expect(script.sent).toHaveLength(1)
    expect(age).toBeLessThan(60)
  })

  test('later: never sent again, it expires', async () => {
    const opened = await doubtful(61 * second)
    await lowerFence(opened)
    await ask(opened, answers.absent)
    expect(script.sent).toEqual([])
    expect(await stands(opened)).toMatchObject({ status: 'pending', state: 'doubt' })
    await scripted.clock.advance(day)
    expect((await ask(opened, answers.absent)).status).toBe('expired')
  })

  test('where a repetition would be a second prompt: never sent again', async () => {
    script.idempotent = false
    const opened = await doubtful(40 * second)
    await lowerFence(opened)
    await ask(opened, answers.absent)
    expect(script.sent).toEqual([])
  })

  test.each([
    ['unknown', { status: 'pending', state: 'doubt', attempt: 2 }],
    ['notSent', { status: 'pending', state: 'doubt', attempt: 2 }],
    ['settled', { status: 'success', state: 'settled', attempt: 2 }],
    ['duplicate', { status: 'pending', state: 'accepted', attempt: 2 }],
  ] as const)('the second send answers %s', async (kind, expected) => {
    const opened = await doubtful(40 * second)
    await lowerFence(opened)
    script.collect = [says[kind]]
    await ask(opened, answers.absent)
    expect(await stands(opened)).toMatchObject(expected)
    expect(await credited()).toBe(kind === 'settled' ? 5_000n : 0n)
  })

  test('a process that died between its commit and its call is made up for', async () => {
    const opened = await openCollection(scripted.pool, scripted.merchant)
    await scripted.clock.advance(40 * second)
    await lowerFence(opened)
    script.collect = [says.accepted]
    await ask(opened, answers.absent)
    expect(script.sent).toMatchObject([{ attempt: 2, handle: { correlationId: opened.correlationId } }])
  })
})

describe('a send that never left', () => {
  async function unsent(ageMs: number): Promise<Opened> {
    const opened = await fresh()
    script.collect = [says.notSent]
    await sendRequest(scripted.services, opened.request, 'interactive', deadlineIn(10_000))
    if (ageMs > 0) await scripted.clock.advance(ageMs)
    // The fence is open to the millisecond, which a column rounds.
    await lowerFence(opened)
    script.sent = []
    return opened
  }

  test('is sent again without a question, until it leaves', async () => {
    script.idempotent = false
    const opened = await unsent(10 * second)
    script.collect = [says.notSent]
    await ask(opened)
    expect(await stands(opened)).toMatchObject({ status: 'pending', state: 'unsent', attempt: 2 })
    await lowerFence(opened)
    script.collect = [says.accepted]
    expect(await ask(opened)).toMatchObject({ status: 'pending', reached: true })
    expect(await stands(opened)).toMatchObject({ status: 'pending', state: 'accepted', attempt: 3 })
    // For the operator each is the first, and its refusal would be one.
    expect(script.sent.map((request) => request.attempt)).toEqual([1, 1])
    expect(new Set(script.sent.map((request) => request.handle.correlationId)).size).toBe(1)
    expect(script.asked).toBe(0)
  })

  test('a process that stalled with old knowledge never fails a payment that another has sent', async () => {
    const opened = await unsent(10 * second)
    const stale = await claim(opened)
    await lowerFence(opened)
    script.collect = [says.accepted]
    await ask(opened)
    expect(await stands(opened)).toMatchObject({ status: 'pending', state: 'accepted' })
    await lowerFence(opened)
    await scripted.clock.advance(2 * minute)
    expect(await checkRequest(scripted.services, stale)).toMatchObject({ status: 'pending' })
    expect(await stands(opened)).toMatchObject({ status: 'pending', state: 'accepted' })
    expect(script.sent).toHaveLength(1)
  })

  test('after a minute it failed, and nothing is sent', async () => {
    const opened = await unsent(minute)
    expect(await ask(opened)).toMatchObject({ status: 'failed' })
    expect(await stands(opened)).toMatchObject({
      status: 'failed',
      why: 'OPERATOR_UNAVAILABLE',
      state: 'closed',
      nextS: null,
    })
    expect(script.sent).toEqual([])
  })

  test('of two processes that want to send it again, one does', async () => {
    const opened = await unsent(10 * second)
    const [a, b] = [await claim(opened), await claim(opened)]
    script.collect = [says.accepted]
    const both = await Promise.all([checkRequest(scripted.services, a), checkRequest(scripted.services, b)])
    expect(both.map(({ status }) => status)).toEqual(['pending', 'pending'])
    expect(script.sent).toHaveLength(1)
  })
})

import { describe, expect, test } from 'vitest'
import { deadlineIn } from '../../src/operators/call-limits.ts'
import { sendRequest } from '../../src/requests/send.ts'
import { settleMany } from '../kit/money.ts'
import {
  accepted,
  answers,
  ask,
  claim,
  credited,
  day,
  evidence,
  fresh,
  hour,
  minute,
  says,
  scripted,
  script,
  second,
  seconds,
  stands,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

useScriptedOperator()

describe('the first answer', () => {
  test.each([
    ['accepted', { status: 'pending', state: 'accepted', nextS: seconds(60) }, 0n],
    ['duplicate', { status: 'pending', state: 'accepted', nextS: seconds(0) }, 0n],
    ['settled', { status: 'success', state: 'settled', nextS: null, late: false }, 5_000n],
    ['refused', { status: 'failed', state: 'refused', nextS: null, why: 'PAYER_DECLINED' }, 0n],
    ['notSent', { status: 'pending', state: 'unsent', nextS: seconds(2) }, 0n],
    ['unknown', { status: 'pending', state: 'doubt', nextS: seconds(2) }, 0n],
  ] as const)('%s', async (kind, expected, money) => {
    const opened = await fresh()
    script.collect = [says[kind]]
    const sent = await sendRequest(scripted.services, opened.request, 'interactive', deadlineIn(10_000))
    expect(sent.status).toBe(expected.status)
    expect(await stands(opened)).toMatchObject(expected)
    expect(await credited()).toBe(money)
    expect(script.sent).toMatchObject([
      { attempt: 1, payer: '+22370000001', handle: { correlationId: opened.correlationId } },
    ])
  })

  test('polling is asked soon, and an operator that names a pause gets it', async () => {
    const [a, b] = [await fresh(), await fresh()]
    script.collect = [
      { ...says.accepted, notify: 'polling' },
      { ...says.accepted, pollAfterMs: 20_000 },
    ]
    await sendRequest(scripted.services, a.request, 'interactive', deadlineIn(10_000))
    await sendRequest(scripted.services, b.request, 'interactive', deadlineIn(10_000))
    expect(await stands(a)).toMatchObject({ nextS: seconds(0.4) })
    expect(await stands(b)).toMatchObject({ nextS: seconds(20) })
  })

  test('the operator is asked soon after its prompt has ended', async () => {
    const opened = await fresh()
    const expiresAt = new Date(scripted.clock.now().getTime() + 30 * second)
    script.collect = [{ ...says.accepted, expiresAt }]
    await sendRequest(scripted.services, opened.request, 'interactive', deadlineIn(10_000))
    expect(await stands(opened)).toMatchObject({ nextS: seconds(31) })
    await ask(opened, { kind: 'pending', expiresAt: new Date(expiresAt.getTime() + 5 * second) })
    expect(await stands(opened)).toMatchObject({ nextS: seconds(36) })
  })

  test('an operator that counts its polls gets no more, and the last one at the end', async () => {
    const opened = await fresh()
    script.collect = [{ ...says.accepted, notify: 'polling', pollLimit: 3 }]
    script.callbacks = 'none'
    await sendRequest(scripted.services, opened.request, 'interactive', deadlineIn(10_000))
    await ask(opened, answers.pending)
    expect(await stands(opened)).toMatchObject({ nextS: seconds(3) })
    await ask(opened, { kind: 'unreachable', cause: 'connect' })
    await ask(opened, answers.pending)
    expect(await stands(opened)).toMatchObject({ nextS: seconds(day / 1_000) })
    await scripted.clock.advance(day)
    const { handle } = await claim(opened)
    expect(handle.pollsLeft).toBe(1)
    expect(await ask(opened, answers.pending)).toMatchObject({ status: 'expired' })
  })

  test('a page to pay on is answered and kept', async () => {
    const opened = await fresh()
    script.collect = [{ ...says.accepted, action: { type: 'redirect', url: 'https://pay.example/1' } }]
    const sent = await sendRequest(scripted.services, opened.request, 'interactive', deadlineIn(10_000))
    expect(sent).toMatchObject({ status: 'pending', paymentUrl: 'https://pay.example/1', refusal: null })
    const { rows } = await scripted.pool.query('SELECT payment_url FROM transaction WHERE id = $1', [
      opened.transactionId,
    ])
    expect(rows).toEqual([{ payment_url: 'https://pay.example/1' }])
  })

  test('a refusal comes with its words', async () => {
    const opened = await fresh()
    script.collect = [says.refused]
    const { refusal: told } = await sendRequest(
      scripted.services,
      opened.request,
      'interactive',
      deadlineIn(10_000),
    )
    expect(told).toMatchObject({ reason: 'PAYER_DECLINED', words: expect.stringMatching(/\w+/) })
  })

  test('our correlation id stays, for every answer of the operator', async () => {
    const opened = await fresh()
    script.collect = [says.accepted]
    await sendRequest(scripted.services, opened.request, 'interactive', deadlineIn(10_000))
    expect((await claim(opened)).handle).toMatchObject({
      correlationId: opened.correlationId,
      operatorRef: 'OP-1',
    })
  })

  test('a pause of an hour does not keep an unsent prompt open for an hour', async () => {
    const opened = await fresh()
    script.collect = [{ ...says.notSent, retryAfterMs: hour }]
    await sendRequest(scripted.services, opened.request, 'interactive', deadlineIn(10_000))
    expect((await stands(opened)).nextS).toBeLessThanOrEqual(60)
  })
})

describe('asking about an accepted collection', () => {
  test.each<[kind: keyof typeof answers, age: number, status: string, state: string, nextS: unknown]>([
    ['pending', 10 * second, 'pending', 'accepted', seconds(60)],
    ['pending', 2 * minute, 'pending', 'accepted', seconds(30)],
    ['pending', 3 * hour, 'pending', 'accepted', seconds(hour / 1_000)],
    ['pending', day - 10 * minute, 'pending', 'accepted', seconds(600)],
    ['pending', day + second, 'expired', 'accepted', seconds(3_600)],
    ['absent', 10 * second, 'pending', 'accepted', seconds(2, 60)],
    ['absent', 3 * hour, 'pending', 'accepted', seconds(3_600)],
    ['absent', day + second, 'expired', 'accepted', seconds(3_600)],
    ['unreachable', 10 * second, 'pending', 'accepted', seconds(2, 8)],
    ['unreachable', 3 * hour, 'pending', 'accepted', seconds(2, 8)],
    ['unreachable', day + second, 'pending', 'accepted', seconds(2, 8)],
    ['unreachable', 10 * day, 'pending', 'accepted', seconds(2, 8)],
    ['settled', 10 * second, 'success', 'settled', null],
    ['settled', 3 * hour, 'success', 'settled', null],
    ['settled', 10 * day, 'success', 'settled', null],
    ['refused', 10 * second, 'failed', 'refused', null],
    ['refused', 10 * day, 'failed', 'refused', null],
  ])('%s at the age of %d ms: %s', async (kind, age, status, state, nextS) => {
    const opened = await accepted(age)
    const checked = await ask(opened, answers[kind])
    expect(checked).toEqual({ status, reached: kind !== 'unreachable' })
    expect(await stands(opened)).toMatchObject({ status, state, nextS, late: false, attempt: 1 })
    expect(script.sent).toEqual([])
    expect(await credited()).toBe(kind === 'settled' ? 5_000n : 0n)
  })

  test('another amount is credited as the operator says', async () => {
    const opened = await accepted()
    await ask(opened, { kind: 'settled', evidence: { ...evidence, amount: 4_000n } })
    expect(await credited()).toBe(4_000n)
  })

  test('an operator that is out of reach is asked as late as it wishes', async () => {
    const opened = await accepted()
    await ask(opened, { kind: 'unreachable', cause: 'rate_limited', retryAfterMs: 40_000 })
    expect(await stands(opened)).toMatchObject({ nextS: seconds(50) })
  })

  test('the last question comes when the time is over, not after it', async () => {
    const opened = await accepted(day - 20 * second)
    await ask(opened, answers.pending)
    const { nextS } = await stands(opened)
    expect(nextS).toBeGreaterThan(15)
    expect(nextS).toBeLessThanOrEqual(20)
  })
})

describe('two answers for one payment', () => {
  test('the callback was quicker than the first answer: one credit', async () => {
    const opened = await fresh()
    await settleMany(scripted.pool, [{ id: opened.transactionId, to: 'success' }])
    script.collect = [says.settled]
    expect(
      (await sendRequest(scripted.services, opened.request, 'interactive', deadlineIn(10_000))).status,
    ).toBe('success')
    expect(await credited()).toBe(5_000n)
  })

  test('an acceptance after the end reopens nothing, and is asked about late', async () => {
    const opened = await fresh()
    await settleMany(scripted.pool, [{ id: opened.transactionId, to: 'failed' }])
    script.collect = [says.accepted]
    await sendRequest(scripted.services, opened.request, 'interactive', deadlineIn(10_000))
    expect(await stands(opened)).toMatchObject({ status: 'failed', state: 'refused', nextS: seconds(3_600) })
  })
})

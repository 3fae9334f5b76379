import { describe, expect, test } from 'vitest'
import { recordCallback } from '../../src/requests/record-callback.ts'
import { checkRequest } from '../../src/requests/check.ts'
import { eventTypes, fundedMerchant, openCollection, settleMany } from '../kit/money.ts'
import { entriesOf } from '../kit/money-out.ts'
import {
  begun,
  complaints,
  type Disbursement,
  errorsDuring,
  kinds,
  send,
  stateOf,
  take,
  turn,
} from '../kit/scripted-disbursement.ts'
import {
  answers,
  hour,
  killSecondCommit,
  minute,
  says,
  scripted,
  script,
  seconds,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

useScriptedOperator()

const reversed = { deposit: 'reversed', payout: 'completed' } as const
const causeOf = ({ subject, id }: Disbursement) => `${subject === 'deposit' ? 'transaction' : 'payout'}:${id}`
const callbackSays = ({ requestId }: Disbursement, said: 'settled' | 'reversed') =>
  recordCallback(scripted.services, {
    provider: 'OperatorA',
    dedupeKey: crypto.randomUUID(),
    body: '{}',
    requestId,
    correlationId: null,
    says: said,
  })

describe.each(kinds)('a %s that was paid', (subject) => {
  async function settled() {
    const it = await begun(subject)
    await send(it, says.settled)
    return it
  }

  test('and given back: the money is available again, once', async () => {
    const it = await settled()
    await callbackSays(it, 'reversed')
    await turn(it, { query: [answers.reversed] })
    expect(await stateOf(it)).toMatchObject({ status: reversed[subject], nextS: null, held: '20000 + 0' })
    expect((await entriesOf(scripted.pool, causeOf(it))).at(-1)).toBe(
      'reverse clearing_operator_a > available 5000',
    )
    const events = await eventTypes(scripted.pool, it.merchantId)
    expect(events.at(-1)).toBe(`${subject}_reversed`)
    await callbackSays(it, 'reversed')
    await turn(it, { query: [answers.reversed] })
    expect(await stateOf(it)).toMatchObject({ nextS: null, held: '20000 + 0' })
    expect(await eventTypes(scripted.pool, it.merchantId)).toEqual(events)
    // An older answer brings no further question.
    script.callbacks = 'none'
    await callbackSays(it, 'reversed')
    await turn(it, { query: [answers.settled] })
    expect(await stateOf(it)).toMatchObject({ nextS: null, held: '20000 + 0' })
    expect(await complaints(it)).toEqual([])
  })

  test('and given back before a question: both happened, in this order', async () => {
    const it = await begun(subject)
    await send(it, says.accepted)
    await turn(it, { query: [answers.reversed] })
    expect(await stateOf(it)).toMatchObject({ status: reversed[subject], nextS: null, held: '20000 + 0' })
    expect((await eventTypes(scripted.pool, it.merchantId)).slice(-2)).toEqual([
      `${subject}_completed`,
      `${subject}_reversed`,
    ])
    expect(await complaints(it)).toEqual([])
  })

  test('and given back before a question: a process that dies between leaves the second due', async () => {
    const it = await begun(subject)
    await send(it, says.accepted)
    const second = killSecondCommit()
    await expect(turn(it, { query: [answers.reversed] })).rejects.toThrow('killed')
    second.mockRestore()
    expect(await stateOf(it)).toMatchObject({ state: 'settled', nextS: seconds(0), held: '15000 + 0' })
    await turn(it, { query: [answers.reversed] })
    expect(await stateOf(it)).toMatchObject({ status: reversed[subject], nextS: null, held: '20000 + 0' })
    expect(await complaints(it)).toEqual([])
  })

  test.each(['dies', 'lives'] as const)(
    'and given back, which another heard while the older answer settled it, and %s',
    async (other) => {
      const it = await begun(subject)
      await send(it, says.accepted)
      const older = await take(it)
      await callbackSays(it, 'reversed')
      const younger = await take(it)
      script.query = [answers.settled, answers.reversed]
      await checkRequest(scripted.services, older)
      if (other === 'lives') await checkRequest(scripted.services, younger)
      // The killed process recorded nothing of the answer: its request is due again.
      expect((await stateOf(it)).nextS).toEqual(other === 'lives' ? null : seconds(30))
      if (other === 'dies') await turn(it, { query: [answers.reversed] })
      expect(await stateOf(it)).toMatchObject({ status: reversed[subject], nextS: null, held: '20000 + 0' })
      expect(await complaints(it)).toEqual([])
    },
  )

  test.each([
    ['sends no callbacks', 'none', false, true],
    ['answers at once, and keeps no address', 'unsigned', true, true],
    ['tells by itself', 'unsigned', false, false],
  ] as const)('by an operator that %s', async (_what, callbacks, synchronous, watched) => {
    Object.assign(script, { callbacks, synchronous })
    const it = await settled()
    expect((await stateOf(it)).nextS).toEqual(watched ? seconds(60) : null)
    if (!watched) return
    for (const [advanceMs, nextS] of [
      [minute, 9 * 60],
      [9 * minute, 50 * 60],
      [50 * minute, 23 * 3_600],
      [23 * hour, null],
    ] as const) {
      await scripted.clock.advance(advanceMs)
      await turn(it, { query: [answers.settled] })
      expect((await stateOf(it)).nextS).toEqual(nextS === null ? null : seconds(nextS))
    }
    expect(await stateOf(it)).toMatchObject({ held: '15000 + 0' })
  })

  test('and, its callback says, given back: it is asked until its books say so too', async () => {
    const it = await settled()
    await scripted.clock.advance(30 * 24 * hour)
    await callbackSays(it, 'reversed')
    await turn(it, { query: [answers.settled] })
    expect(await stateOf(it)).toMatchObject({ nextS: seconds(60), held: '15000 + 0' })
    await scripted.clock.advance(minute)
    await turn(it, { query: [answers.settled] })
    expect(await stateOf(it)).toMatchObject({ nextS: seconds(9 * 60) })
    await turn(it, { query: [answers.unreachable] })
    expect(await stateOf(it)).toMatchObject({ nextS: seconds(2, 60) })
    await turn(it, { query: [answers.reversed] })
    expect(await stateOf(it)).toMatchObject({ nextS: null, held: '20000 + 0' })
  })

  test('while its callback says given back: it is asked until its books say so too', async () => {
    const it = await begun(subject)
    await send(it, says.accepted)
    await callbackSays(it, 'reversed')
    await turn(it, { query: [answers.settled] })
    expect(await stateOf(it)).toMatchObject({ nextS: seconds(60), held: '15000 + 0' })
  })

  test('and disowned later: nothing moves, and an alarm is raised', async () => {
    const it = await settled()
    await callbackSays(it, 'reversed')
    expect(await errorsDuring(() => turn(it, { query: [answers.absent] }))).toEqual([
      'the operator denies a payment that it had confirmed',
    ])
    expect(await stateOf(it)).toMatchObject({ held: '15000 + 0' })
  })
})

describe.each(kinds)('a %s that failed, and that its operator paid all the same', (subject) => {
  test.each(['settled', 'reversed'] as const)(
    '%s: nothing moves, and an alarm is raised once',
    async (said) => {
      const it = await begun(subject)
      await send(it, says.refused)
      await callbackSays(it, 'settled')
      expect(await errorsDuring(() => turn(it, { query: [answers[said]] }))).toEqual([
        'alarm: an operator paid a request that had failed',
      ])
      expect(await stateOf(it)).toMatchObject({
        status: 'failed',
        state: 'refused',
        nextS: null,
        held: '20000 + 0',
      })
      expect(await complaints(it)).toEqual([])
    },
  )
})

test('a refund that comes back frees its money; the payment that it refunded stays reversed', async () => {
  const merchant = await fundedMerchant(scripted.pool, 20_000n)
  const paid = await openCollection(scripted.pool, merchant, { amount: 5_000n })
  await settleMany(scripted.pool, [{ id: paid.transactionId, to: 'success' }])
  const it = await begun('deposit', { merchant, refundOf: paid.transactionId })
  await send(it, says.settled)
  await callbackSays(it, 'reversed')
  expect(await errorsDuring(() => turn(it, { query: [answers.reversed] }))).toEqual([
    'an operator took back a refund',
  ])
  expect(await stateOf(it)).toMatchObject({ status: 'reversed', held: '25000 + 0' })
  const payment = { ...it, id: paid.transactionId, requestId: paid.requestId }
  expect(await stateOf(payment)).toMatchObject({ status: 'reversed' })

  // Its own operator takes the payment back as well: that moves, once.
  await callbackSays(payment, 'reversed')
  await turn(payment, { query: [answers.reversed] })
  await callbackSays(payment, 'reversed')
  await turn(payment, { query: [answers.reversed] })
  expect(await stateOf(payment)).toMatchObject({ status: 'reversed', nextS: null, held: '20000 + 0' })
  expect(await complaints(it)).toEqual([])
})

test('a payment that refunds gave back is watched on where its operator sends no callbacks', async () => {
  script.callbacks = 'none'
  const merchant = await fundedMerchant(scripted.pool, 20_000n)
  const paid = await openCollection(scripted.pool, merchant, { amount: 5_000n })
  await settleMany(scripted.pool, [{ id: paid.transactionId, to: 'success' }])
  const it = await begun('deposit', { merchant, refundOf: paid.transactionId })
  await send(it, says.settled)
  const payment = { ...it, id: paid.transactionId, requestId: paid.requestId }
  await turn(payment, { query: [answers.settled] })
  expect(await stateOf(payment)).toMatchObject({ status: 'reversed', nextS: seconds(60) })
})

test('100 parallel outcomes of one payout: the first counts', async () => {
  const it = await begun('payout')
  await send(it, says.accepted)
  const { subjects } = await import('../../src/resources/subjects.ts')
  const refusal = { reason: 'PAYEE_NOT_FOUND', code: 'x' } as const
  const paid = { status: 'success', source: 'query', evidence: says.settled.evidence, watchMs: null } as const
  const ends = await Promise.all(
    Array.from({ length: 100 }, (_, n) =>
      subjects.payout.settle(
        scripted.services,
        it.id,
        n % 2 ? paid : { status: 'failed', source: 'query', refusal },
      ),
    ),
  )
  expect(ends.filter(({ moved }) => moved)).toHaveLength(1)
  expect(await entriesOf(scripted.pool, causeOf(it))).toHaveLength(2)
  expect(await complaints(it)).toEqual([])
})

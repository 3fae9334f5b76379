import { describe, expect, test } from 'vitest'
import { haltPaymentsOut, resumePaymentsOut } from '../../src/ledger/payments-out.ts'
import { eventTypes } from '../kit/money.ts'
import { entriesOf } from '../kit/money-out.ts'
import {
  begun,
  complaints,
  type Disbursement,
  errorsDuring,
  floatEmpty,
  kinds,
  send,
  stateOf,
  turn,
} from '../kit/scripted-disbursement.ts'
import {
  answers,
  day,
  evidence,
  hour,
  lowerFence,
  minute,
  says,
  scripted,
  script,
  second,
  seconds,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

useScriptedOperator()

const succeeds = { deposit: 'success', payout: 'completed' } as const
const untouched = '15000 + 5000'
const paid = '15000 + 0'
const returned = '20000 + 0'

/** The last event of a disbursement's merchant. */
const lastEvent = async ({ merchantId }: Disbursement) => (await eventTypes(scripted.pool, merchantId)).at(-1)

describe.each(kinds)('the first answer to a %s', (subject) => {
  test('settled: paid once, from the money set aside', async () => {
    const it = await begun(subject)
    const sent = await send(it, says.settled)
    expect(sent).toMatchObject({ status: succeeds[subject], reached: true, refusal: null })
    expect(await stateOf(it)).toMatchObject({ status: succeeds[subject], state: 'settled', held: paid })
    expect(await lastEvent(it)).toBe(`${subject}_completed`)
    expect(script.paidOut).toMatchObject([{ amount: 5_000n, payee: '+22370000001', attempt: 1 }])
    expect(await complaints(it)).toEqual([])
  })

  test('refused: failed, and the money is back', async () => {
    const it = await begun(subject)
    const sent = await send(it, says.refused)
    expect(sent).toMatchObject({ status: 'failed', refusal: { reason: 'PAYER_DECLINED' } })
    expect(await stateOf(it)).toMatchObject({
      status: 'failed',
      why: 'PAYER_DECLINED',
      state: 'refused',
      nextS: null,
      held: returned,
    })
    expect(await lastEvent(it)).toBe(`${subject}_failed`)
    expect(await complaints(it)).toEqual([])
  })

  test.each([
    ['accepted', says.accepted, 'accepted', 3, 3],
    ['a duplicate', says.duplicate, 'accepted', 0, 0],
    ['unknown', says.unknown, 'doubt', 2, 2],
    ['not sent', says.notSent, 'unsent', 2, 2],
  ] as const)('%s: under way, its money set aside, looked at soon', async (_what, said, state, from, to) => {
    const it = await begun(subject)
    const sent = await send(it, said)
    expect(sent).toMatchObject({ status: 'processing', reached: said !== says.notSent, refusal: null })
    expect(await stateOf(it)).toMatchObject({
      status: 'processing',
      state,
      nextS: seconds(from, to),
      held: untouched,
    })
    expect(await complaints(it)).toEqual([])
  })

  test('less was paid than asked for: that much leaves, the rest is withheld', async () => {
    const it = await begun(subject)
    const little = { ...says.settled, evidence: { ...evidence, amount: 4_999n } }
    expect(await errorsDuring(() => send(it, little))).toEqual([
      'alarm: an operator says that less was paid than asked',
    ])
    expect(await stateOf(it)).toMatchObject({ status: succeeds[subject], held: paid })
    expect(await complaints(it)).toEqual([])
  })

  test('more was paid: the money set aside leaves, and an alarm is raised', async () => {
    const it = await begun(subject)
    const much = { ...says.settled, evidence: { ...evidence, amount: 5_001n } }
    expect(await errorsDuring(() => send(it, much))).toEqual(['alarm: an operator paid out too much'])
    expect(await stateOf(it)).toMatchObject({ status: succeeds[subject], held: paid })
    expect(await complaints(it)).toEqual([])
  })
})

describe.each(kinds)('a %s that provably never left', (subject) => {
  const [giveUpMs, young] = subject === 'deposit' ? [15 * second, 14 * second] : [24 * hour, 23 * hour]

  test('is sent again under the same identity, as for the first time', async () => {
    const it = await begun(subject)
    await send(it, says.notSent)
    const checked = await turn(it, { disburse: [says.settled] })
    expect(checked).toMatchObject({ status: succeeds[subject], reached: true })
    const [first, second_] = script.paidOut
    expect(second_).toMatchObject({ attempt: 1, handle: { correlationId: first?.handle.correlationId } })
    expect(script.asked).toBe(0)
    expect(await stateOf(it)).toMatchObject({ attempt: 2, held: paid })
  })

  test(`is given up after its time, and not before: failed, the money is back`, async () => {
    const it = await begun(subject)
    await send(it, says.notSent)
    await scripted.clock.advance(young)
    await turn(it, { disburse: [says.notSent] })
    expect(await stateOf(it)).toMatchObject({ status: 'processing', held: untouched })
    await scripted.clock.advance(giveUpMs - young)
    expect(await turn(it, {})).toEqual({ status: 'failed', reached: false })
    expect(await stateOf(it)).toMatchObject({
      status: 'failed',
      why: 'OPERATOR_UNAVAILABLE',
      state: 'closed',
      nextS: null,
      held: returned,
    })
    expect(script.paidOut).toHaveLength(2)
    expect(await complaints(it)).toEqual([])
  })

  test('is looked at when its time is over, however long the operator wants to be left alone', async () => {
    const it = await begun(subject)
    await send(it, { ...says.notSent, cause: 'rate_limited', retryAfterMs: hour })
    expect(await stateOf(it)).toMatchObject({ nextS: seconds(subject === 'deposit' ? 15 : 60) })
  })
})

describe.each(kinds)('a %s in doubt', (subject) => {
  async function doubtful(ageMs: number) {
    const it = await begun(subject)
    await send(it, says.unknown)
    await scripted.clock.advance(ageMs)
    return it
  }

  test('of which the operator has no record is sent again behind its fence, at any age', async () => {
    const it = await doubtful(30 * day)
    await turn(it, { query: [answers.absent] })
    expect(await stateOf(it)).toMatchObject({ state: 'doubt', attempt: 1, held: untouched })
    await lowerFence(it)
    await turn(it, { query: [answers.absent], disburse: [says.accepted] })
    expect(await stateOf(it)).toMatchObject({ state: 'accepted', attempt: 2, held: untouched })
    const [first, again] = script.paidOut
    expect(again).toMatchObject({ attempt: 2, handle: { correlationId: first?.handle.correlationId } })
    expect(script.paidOut).toHaveLength(2)
  })

  test('is not hammered: sent again in doubt, an old one is asked about as an old one', async () => {
    const it = await doubtful(30 * day)
    await lowerFence(it)
    await turn(it, { query: [answers.absent], disburse: [says.unknown] })
    expect(await stateOf(it)).toMatchObject({ attempt: 2, nextS: seconds(2) })
    await turn(it, { query: [answers.absent] })
    expect(await stateOf(it)).toMatchObject({ state: 'doubt', nextS: seconds(3_600) })
  })

  test('is only asked about where the operator may carry a repetition out', async () => {
    script.idempotent = false
    const it = await doubtful(minute)
    await lowerFence(it)
    await turn(it, { query: [answers.absent] })
    await scripted.clock.advance(400 * day)
    await turn(it, { query: [answers.absent] })
    expect(await stateOf(it)).toMatchObject({ status: 'processing', state: 'doubt', held: untouched })
    expect((await stateOf(it)).nextS).toBeGreaterThan(60)
    expect(script.paidOut).toHaveLength(1)
  })

  test('whose resend is refused fails only when the operator says so itself', async () => {
    const it = await doubtful(0)
    await lowerFence(it)
    const refused = { ...says.unknown, cause: 'resend_refused' } as const
    await turn(it, { query: [answers.absent], disburse: [refused] })
    expect(await stateOf(it)).toMatchObject({ status: 'processing', held: untouched })
    await turn(it, { query: [answers.refused] })
    expect(await stateOf(it)).toMatchObject({ status: 'failed', held: returned })
  })

  test('of which the operator wants one question only has no end to keep it for', async () => {
    const it = await begun(subject)
    await send(it, { ...says.accepted, pollLimit: 1 })
    expect(await stateOf(it)).toMatchObject({ state: 'accepted', nextS: seconds(3) })
    await turn(it, { query: [answers.pending] })
    expect(await stateOf(it)).toMatchObject({ state: 'accepted', nextS: seconds(3) })
  })

  test.each([
    ['has lost', says.accepted, answers.absent],
    ['was not sent again and has no record of', says.unknown, answers.absent],
    ['says nothing readable of', says.accepted, { kind: 'unreachable', cause: 'unreadable' }],
    ['is never reached again about', says.unknown, answers.unreachable],
  ] as const)('that its operator %s: after a day an alarm is raised', async (_what, said, answer) => {
    script.idempotent = false
    const it = await begun(subject)
    await send(it, said)
    await scripted.clock.advance(23 * hour)
    expect(await errorsDuring(() => turn(it, { query: [answer] }))).toEqual([])
    await scripted.clock.advance(hour)
    expect(await errorsDuring(() => turn(it, { query: [answer] }))).toEqual([
      'alarm: an operator does not tell the outcome of a disbursement',
    ])
    const now = await stateOf(it)
    expect(now).toMatchObject({ status: 'processing', nextS: seconds(3_600), held: untouched })
  })

  test('never expires: pending for a year, out of reach for another, then paid', async () => {
    const it = await begun(subject)
    await send(it, says.accepted)
    await scripted.clock.advance(365 * day)
    await turn(it, { query: [answers.pending] })
    expect(await stateOf(it)).toMatchObject({ status: 'processing', held: untouched })
    await scripted.clock.advance(365 * day)
    await turn(it, { query: [answers.unreachable] })
    const now = await stateOf(it)
    expect(now).toMatchObject({ status: 'processing', nextS: seconds(3_600), held: untouched })
    await turn(it, { query: [answers.settled] })
    expect(await stateOf(it)).toMatchObject({ status: succeeds[subject], held: paid })
    expect(await complaints(it)).toEqual([])
  })
})

describe.each(kinds)('while payments out are halted a %s', (subject) => {
  test('is not sent again; afterwards it is', async () => {
    const unsent = await begun(subject)
    await send(unsent, says.notSent)
    const lost = await begun(subject)
    await send(lost, says.unknown)
    await lowerFence(lost)
    script.paidOut = []
    await haltPaymentsOut(scripted.db.owner, 'test')
    await turn(unsent, {})
    await turn(lost, { query: [answers.absent] })
    expect(script.paidOut).toEqual([])
    for (const it of [unsent, lost])
      expect(await stateOf(it)).toMatchObject({ status: 'processing', attempt: 1, held: untouched })
    await resumePaymentsOut(scripted.db.owner, 'test')
    await turn(unsent, { disburse: [says.settled] })
    await turn(lost, { query: [answers.absent], disburse: [says.settled] })
    for (const it of [unsent, lost]) expect(await stateOf(it)).toMatchObject({ attempt: 2, held: paid })
  })

  test('is given up all the same where it never left', async () => {
    const it = await begun(subject)
    await send(it, says.notSent)
    await scripted.clock.advance(day)
    await haltPaymentsOut(scripted.db.owner, 'test')
    await turn(it, {})
    await resumePaymentsOut(scripted.db.owner, 'test')
    expect(await stateOf(it)).toMatchObject({ status: 'failed', held: returned })
  })
})

describe('our float at the operator is empty', () => {
  test('a deposit fails at once, its money is back, and an alarm is raised', async () => {
    const it = await begun('deposit')
    expect(await errorsDuring(() => send(it, floatEmpty))).toEqual([
      'alarm: our float at an operator is empty',
    ])
    expect(await stateOf(it)).toMatchObject({
      status: 'failed',
      why: 'FLOAT_INSUFFICIENT',
      nextS: null,
      held: returned,
    })
    expect(await complaints(it)).toEqual([])
  })

  test('a payout waits, is sent again less and less often, and an alarm is raised once', async () => {
    const it = await begun('payout')
    const errors = await errorsDuring(async () => {
      expect(await send(it, floatEmpty)).toMatchObject({ status: 'processing', refusal: null })
      for (const pause of [30, 60, 120, 240, 480, 900, 900]) {
        const now = await stateOf(it)
        expect(now).toMatchObject({ status: 'processing', state: 'unsent', held: untouched })
        expect(now.nextS).toEqual(seconds(pause))
        await scripted.clock.advance(pause * second)
        await turn(it, { disburse: [floatEmpty] })
      }
      await turn(it, { disburse: [says.settled] })
    })
    expect(errors).toEqual(['alarm: our float at an operator is empty'])
    expect(await stateOf(it)).toMatchObject({ status: 'completed', held: paid })
    const identities = new Set(script.paidOut.map(({ handle }) => handle.correlationId))
    expect([script.paidOut.length, identities.size]).toEqual([9, 1])
    expect(await complaints(it)).toEqual([])
  })

  test('a payout that waited for a day failed, and says why', async () => {
    const it = await begun('payout')
    await send(it, floatEmpty)
    await scripted.clock.advance(day)
    await turn(it, {})
    expect(await stateOf(it)).toMatchObject({ status: 'failed', why: 'FLOAT_INSUFFICIENT', held: returned })
    expect(await complaints(it)).toEqual([])
  })

  test('a payout that waited, and then was out of reach until its day was over, says that', async () => {
    const it = await begun('payout')
    await send(it, floatEmpty)
    await scripted.clock.advance(hour)
    await turn(it, { disburse: [says.notSent] })
    await scripted.clock.advance(day)
    await turn(it, {})
    expect(await stateOf(it)).toMatchObject({
      status: 'failed',
      why: 'OPERATOR_UNAVAILABLE',
      held: returned,
    })
  })

  /** Its first send was never recorded, and its operator has no record of it. */
  async function lostThenTurnedAway(subject: Disbursement['subject'], first?: typeof says.unknown) {
    const it = await begun(subject)
    if (first) await send(it, first)
    await lowerFence(it)
    await turn(it, { query: [answers.absent], disburse: [floatEmpty] })
    return it
  }

  test.each([
    ['never sent', undefined],
    ['with an unknown first answer', says.unknown],
  ])('a deposit %s, and of which its operator has no record, fails at once', async (_what, first) => {
    const it = await lostThenTurnedAway('deposit', first)
    expect(await stateOf(it)).toMatchObject({
      status: 'failed',
      why: 'FLOAT_INSUFFICIENT',
      attempt: 2,
      nextS: null,
      held: returned,
    })
    expect(await complaints(it)).toEqual([])
  })

  test('a payout of which its operator has no record waits for a day, and is asked about', async () => {
    const it = await lostThenTurnedAway('payout', says.unknown)
    const errors = await errorsDuring(async () => {
      for (const pause of [120, 240, 480, 900, 900]) {
        await lowerFence(it)
        await turn(it, { query: [answers.absent], disburse: [floatEmpty] })
        const now = await stateOf(it)
        expect(now).toMatchObject({ status: 'processing', state: 'doubt', held: untouched })
        expect(now.nextS).toEqual(seconds(pause))
      }
    })
    expect(errors).toEqual([])
    await scripted.clock.advance(day)
    // The last send may still arrive.
    await turn(it, { query: [answers.absent] })
    expect(await stateOf(it)).toMatchObject({ status: 'processing', attempt: 7, held: untouched })
    await lowerFence(it)
    await turn(it, { query: [answers.absent] })
    expect(await stateOf(it)).toMatchObject({ status: 'failed', why: 'FLOAT_INSUFFICIENT', held: returned })
    expect(await complaints(it)).toEqual([])
  })

  test('a payout that was turned away, sent again and lost, is never given up', async () => {
    const it = await lostThenTurnedAway('payout')
    await lowerFence(it)
    await turn(it, { query: [answers.absent], disburse: [says.unknown] })
    await scripted.clock.advance(2 * day)
    await lowerFence(it)
    await turn(it, { query: [answers.absent], disburse: [says.accepted] })
    expect(await stateOf(it)).toMatchObject({ status: 'processing', state: 'accepted', held: untouched })
  })
})

test('the movements of a payout that was paid with less: reserve, post, withhold', async () => {
  const it = await begun('payout')
  await send(it, { ...says.settled, evidence: { ...evidence, amount: 4_000n } })
  expect(await entriesOf(scripted.pool, `payout:${it.id}`)).toEqual([
    'reserve available > reserved 5000',
    'post reserved > clearing_operator_a 4000',
    'withhold reserved > unallocated 1000',
  ])
})

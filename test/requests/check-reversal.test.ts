import { describe, expect, test } from 'vitest'
import { scheduleBounds } from '../../src/requests/schedule.ts'
import { checkRequest } from '../../src/requests/check.ts'
import { eventTypes } from '../kit/money.ts'
import {
  accepted,
  answers,
  ask,
  claim,
  credited,
  day,
  killSecondCommit,
  minute,
  type Opened,
  scripted,
  script,
  seconds,
  stands,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

useScriptedOperator()

async function paid(callbacks: 'none' | 'unsigned'): Promise<Opened> {
  script.callbacks = callbacks
  const opened = await accepted()
  await ask(opened, answers.settled)
  return opened
}

/** As a callback that says something else makes it. */
const makeDue = ({ requestId }: Opened) =>
  scripted.db.owner.query('UPDATE operator_request SET next_check_at = service_now() WHERE id = $1', [
    requestId,
  ])

describe('an operator that sends no callbacks', () => {
  test('is asked after 1 min, 10 min, 1 h and 24 h whether it took the money back, and no more', async () => {
    const opened = await paid('none')
    let ageMs = 0
    for (const atMs of scheduleBounds.reversalChecksMs) {
      const { nextS } = await stands(opened)
      expect(Math.abs((nextS ?? 0) - (atMs - ageMs) / 1_000)).toBeLessThan(2)
      await scripted.clock.advance(atMs - ageMs)
      ageMs = atMs
      expect(await ask(opened, answers.settled)).toEqual({ status: 'success', reached: true })
    }
    expect(await stands(opened)).toMatchObject({ status: 'success', state: 'settled', nextS: null })
    expect(await credited()).toBe(5_000n)
  })

  test('and while it is out of reach it is asked again, until it answers', async () => {
    const opened = await paid('none')
    await scripted.clock.advance(minute)
    await ask(opened, answers.unreachable)
    expect(await stands(opened)).toMatchObject({ state: 'settled', nextS: seconds(2, 60) })
    await scripted.clock.advance(40 * day)
    await ask(opened, answers.unreachable)
    expect(await stands(opened)).toMatchObject({ state: 'settled', nextS: seconds(2, 60) })
    expect(await ask(opened, answers.reversed)).toMatchObject({ status: 'reversed' })
  })
})

test('an operator that calls back is not asked again by itself', async () => {
  expect(await stands(await paid('unsigned'))).toMatchObject({ state: 'settled', nextS: null })
})

test('a payment that was taken back is reversed, once, and asked about no more', async () => {
  const opened = await paid('unsigned')
  await makeDue(opened)
  expect(await ask(opened, answers.reversed)).toEqual({ status: 'reversed', reached: true })
  expect(await stands(opened)).toMatchObject({ status: 'reversed', state: 'settled', nextS: null })
  await makeDue(opened)
  expect((await ask(opened, answers.reversed)).status).toBe('reversed')
  expect(await credited()).toBe(0n)
  expect(await eventTypes(scripted.pool, scripted.merchant.merchantId)).toEqual([
    'payment_pending',
    'payment_received',
    'payment_reversed',
  ])
})

test.each([
  [0, 'payment_pending payment_received payment_reversed'],
  [day + minute, 'payment_pending payment_received payment_reversed'],
])('a payment paid and taken back before a question (after %d ms) has both events', async (ageMs, told) => {
  const opened = await accepted(ageMs)
  expect((await ask(opened, answers.reversed)).status).toBe('reversed')
  expect((await eventTypes(scripted.pool, scripted.merchant.merchantId)).join(' ')).toBe(told)
  expect(await credited()).toBe(0n)
})

test.each(['pending', 'absent', 'refused'] as const)('%s after the payment changes nothing', async (kind) => {
  const opened = await paid('unsigned')
  await makeDue(opened)
  expect((await ask(opened, answers[kind])).status).toBe('success')
  expect(await stands(opened)).toMatchObject({ status: 'success', state: 'settled', nextS: null })
  expect(await credited()).toBe(5_000n)
  expect(script.sent).toEqual([])
})

test('a process that dies between the payment and its reversal leaves the second due', async () => {
  const opened = await accepted()
  const second = killSecondCommit()
  await expect(ask(opened, answers.reversed)).rejects.toThrow('killed')
  second.mockRestore()
  expect(await stands(opened)).toMatchObject({ status: 'success', nextS: seconds(0) })
  await ask(opened, answers.reversed)
  expect(await stands(opened)).toMatchObject({ status: 'reversed', nextS: null })
  expect(await credited()).toBe(0n)
})

test('a reversal that a dead process heard while an older answer settled the payment is due', async () => {
  const opened = await accepted()
  const older = await claim(opened)
  await makeDue(opened)
  await claim(opened)
  script.query = [answers.settled]
  await checkRequest(scripted.services, older)
  expect(await stands(opened)).toMatchObject({ status: 'success', state: 'settled', nextS: seconds(30) })
  await ask(opened, answers.reversed)
  expect(await stands(opened)).toMatchObject({ status: 'reversed', nextS: null })
  expect(await credited()).toBe(0n)
})

import { expect, test } from 'vitest'
import { countWaitingQuestion, slotsOf, waitingQuestionsPerSecond } from '../../src/requests/check-slots.ts'
import { nextCheckMs } from '../../src/requests/schedule.ts'
import {
  accepted,
  answers,
  ask,
  minute,
  scripted,
  second,
  seconds,
  stands,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

useScriptedOperator()

/** Plays questions about payments that stay unpaid. @returns their times, and the longest delay of one */
function play(payments: number, ms: number): { asked: number[]; latestMs: number } {
  const slots = slotsOf({ checkSlots: new Map() }, 'OperatorC')
  const due = new Map<number, number[]>()
  const at = (time: number, payment: number) =>
    void (due.get(time)?.push(payment) ?? due.set(time, [payment]))
  for (let n = 0; n < payments; n += 1) at(Math.floor((n / payments) * 15 * second), n)
  const asked: number[] = []
  let latestMs = 0
  for (let now = 0; now < ms; now += 1) {
    for (const payment of due.get(now) ?? []) {
      asked.push(now)
      const laterMs = countWaitingQuestion(slots, now)
      latestMs = Math.max(latestMs, laterMs)
      at(now + nextCheckMs('polling', minute, 0.5) + laterMs, payment)
    }
    due.delete(now)
  }
  return { asked, latestMs }
}

test('questions about 12,000 unpaid payments keep their rate', () => {
  const { asked } = play(12_000, 30 * minute)
  // Each was asked about once before it was known how many they are.
  const later = asked.filter((time) => time >= minute)
  expect(later.length / (29 * 60)).toBeLessThanOrEqual(waitingQuestionsPerSecond * 1.05)
  expect(later.length / (29 * 60)).toBeGreaterThan(waitingQuestionsPerSecond * 0.8)
})

test('a hundred payments are asked about as usual', () => {
  const { asked, latestMs } = play(100, 10 * minute)
  expect(latestMs).toBeLessThanOrEqual(second)
  expect(asked.length).toBeGreaterThan(100 * 39)
})

test('a young payment is asked about as usual, an old one later, but never after its own end', async () => {
  const slots = slotsOf(scripted.services, 'OperatorA')
  const behind = (ms: number) => Object.assign(slots, { aheadMs: ms, aheadAt: performance.now() })
  const young = await accepted(30 * second)
  behind(600 * second)
  await ask(young, answers.pending)
  expect(await stands(young)).toMatchObject({ nextS: seconds(60) })
  const old = await accepted(10 * minute)
  behind(600 * second)
  await ask(old, answers.pending)
  expect((await stands(old)).nextS).toBeGreaterThan(600)
  behind(1_000_000 * second)
  await ask(old, answers.pending)
  expect((await stands(old)).nextS).toBeLessThanOrEqual(86_400 - 600 + 1)
  behind(0)
})

import { describe, expect, test } from 'vitest'
import { firstCheckMs, nextCheckMs, nextUnknownCheckMs, politeCheckMs } from '../../src/requests/schedule.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
/** The middle of the jitter. */
const even = 0.5

describe('an open collection is asked about', () => {
  test.each<[notify: 'callback' | 'polling', age: number, every: number]>([
    ['callback', 0, minute],
    ['callback', minute - 1, minute],
    ['callback', minute, 30 * second],
    ['callback', 5 * minute, 2 * minute],
    ['callback', 30 * minute, 10 * minute],
    ['callback', 2 * hour, hour],
    ['callback', 200 * hour, hour],
    ['polling', 0, 3 * second],
    ['polling', 30 * second, 15 * second],
    ['polling', 5 * minute, minute],
    ['polling', 30 * minute, 5 * minute],
    ['polling', 2 * hour, 30 * minute],
    ['polling', 200 * hour, 30 * minute],
  ])('%s at the age of %d ms: every %d ms', (notify, age, every) => {
    expect(nextCheckMs(notify, age, even)).toBe(every)
    expect(nextCheckMs(notify, age, 0)).toBe(every * 0.8)
    expect(nextCheckMs(notify, age, 1)).toBe(every * 1.2)
  })

  test.each([
    ['callback', 52],
    ['polling', 115],
  ] as const)('%s costs at most some %d questions in a day', (notify, most) => {
    let questions = 0
    for (let age = 0; age < 24 * hour; age += nextCheckMs(notify, age, even)) questions += 1
    expect(questions).toBeLessThanOrEqual(most + 5)
    expect(questions).toBeGreaterThan(most - 15)
  })
})

test.each([
  ['collect', 'polling', 400],
  ['disburse', 'polling', 400],
  ['collect', 'callback', minute],
  ['disburse', 'callback', 3 * second],
] as const)('the first question about a %s, %s, comes after %d ms', (kind, notify, first) => {
  expect(firstCheckMs(kind, notify, even)).toBe(first)
  expect(firstCheckMs(kind, notify, 0)).toBe(first * 0.8)
})

test('an operation in doubt is asked about soon, then less and less often', () => {
  const pauses = Array.from({ length: 8 }, (_, checks) => nextUnknownCheckMs(checks, even))
  expect(pauses).toEqual([2, 4, 8, 15, 30, 60, 60, 60].map((seconds) => seconds * second))
  expect(nextUnknownCheckMs(0, 0)).toBe(1_600)
  expect(nextUnknownCheckMs(1_000_000, 1)).toBe(72_000)
})

test('no two clocks tick together', () => {
  const pauses = new Set(Array.from({ length: 100 }, () => nextCheckMs('polling', 0)))
  expect(pauses.size).toBeGreaterThan(20)
})

describe('an operator that says when it wants to be asked', () => {
  const now = new Date('2026-01-31T10:00:00.000Z')
  const inMs = (ms: number) => new Date(now.getTime() + ms)

  test.each([
    ['nothing said: the regular pause', {}, minute],
    ['not before its time', { pollAfterMs: 5 * minute }, 5 * minute],
    ['a shorter pause of its own is none', { pollAfterMs: second }, minute],
    ['soon after its prompt has ended', { expiresAt: inMs(20 * second) }, 21 * second],
    ['a prompt that ends later, or has ended', { expiresAt: inMs(2 * minute) }, minute],
    ['a prompt that ended', { expiresAt: inMs(-second) }, minute],
    ['two questions left', { pollsLeft: 2 }, minute],
    ['the last question waits for the end', { pollsLeft: 1 }, hour],
    ['no question left', { pollsLeft: 0 }, hour],
    ['never after the end', { pollAfterMs: 3 * hour }, hour],
  ])('%s', (_what, asked, next) => expect(politeCheckMs(minute, asked, now, hour)).toBe(next))
})

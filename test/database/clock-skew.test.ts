import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { assertClock, readClockSkew } from '../../src/database/clock-skew.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db.drop())
afterEach(() => void vi.restoreAllMocks())

/** The clock of this process is wrong by so much. */
function shiftClock(ms: number): void {
  const real = Date.now
  vi.spyOn(Date, 'now').mockImplementation(() => real() + ms)
}

// 400 ms more than the seconds in the words: the time that the database takes to answer counts as no skew.
test.each([
  [25 * 3_600_000 + 400, '90000 s ahead of the clock of the database server. Set both by NTP'],
  [6_400, '6 s ahead of'],
  [-3_600_400, '3600 s behind the clock of the database server'],
])('a clock that is wrong by %i ms is refused in a sentence', async (ms, words) => {
  shiftClock(ms)
  await expect(assertClock(db.database.pool)).rejects.toThrow(words)
})

test.each([0, 4_000, -4_000])('a clock that is wrong by %i ms is good enough', async (ms) => {
  shiftClock(ms)
  await expect(assertClock(db.database.pool)).resolves.toBeUndefined()
})

test('a slow answer is no wrong clock', async () => {
  const late = async (pauses: [number, number]) => {
    const [beforeMs, afterMs] = pauses
    const query = async (text: string) => {
      await sleep(beforeMs)
      const answer = await db.database.pool.query(text)
      await sleep(afterMs)
      return answer
    }
    return readClockSkew({ query } as unknown as Pool)
  }
  expect(await late([300, 0])).toBe(0)
  expect(await late([0, 300])).toBe(0)
})

import type pg from 'pg'
import { expect, test } from 'vitest'
import { takesWrites } from '../../src/resources/status/probe-write.ts'

/** A pool that gives every query this answer. */
function poolOf(answer: () => Promise<unknown>) {
  let queries = 0
  const query = () => {
    queries += 1
    return answer()
  }
  return { pool: { query } as unknown as pg.Pool, queries: () => queries }
}
const results = (isReadOnly: boolean) => Promise.resolve([{ rows: [] }, { rows: [{ isReadOnly }] }])

test('many status requests at once cost one probe of the database', async () => {
  const { pool, queries } = poolOf(() => results(false))
  const answers = await Promise.all(Array.from({ length: 500 }, () => takesWrites(pool)))
  expect(new Set(answers)).toEqual(new Set([true]))
  expect(queries()).toBe(1)
})

test.each<[string, () => Promise<unknown>]>([
  ['a database that takes no writes', () => results(true)],
  ['a full disk', () => Promise.reject(Object.assign(new Error('no space left'), { code: '53100' }))],
])('the probe reports %s, and fails no request', async (_what, answer) => {
  expect(await takesWrites(poolOf(answer).pool)).toBe(false)
})

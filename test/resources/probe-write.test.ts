import type pg from 'pg'
import { expect, test } from 'vitest'
import { takesWrites } from '../../src/resources/status/probe-write.ts'

/** A pool that answers every question like this. */
function poolOf(answer: () => Promise<unknown>) {
  let asked = 0
  const query = () => {
    asked += 1
    return answer()
  }
  return { pool: { query } as unknown as pg.Pool, asked: () => asked }
}
const results = (isReadOnly: boolean) => Promise.resolve([{ rows: [] }, { rows: [{ isReadOnly }] }])

test('a crowd that asks for the status costs one look at the database', async () => {
  const { pool, asked } = poolOf(() => results(false))
  const answers = await Promise.all(Array.from({ length: 500 }, () => takesWrites(pool)))
  expect(new Set(answers)).toEqual(new Set([true]))
  expect(asked()).toBe(1)
})

test.each<[string, () => Promise<unknown>]>([
  ['a database that takes no writes', () => results(true)],
  ['a full disk', () => Promise.reject(Object.assign(new Error('no space left'), { code: '53100' }))],
])('%s is told, and takes no request down', async (_what, answer) => {
  expect(await takesWrites(poolOf(answer).pool)).toBe(false)
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import { SharedAllowances } from '../../src/access/shared-allowances.ts'
import { type Batches, openBatches } from '../../src/database/batch.ts'
import { openPool } from '../../src/database/client.ts'
import { limits } from '../../src/shared/limits.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let db: TestDatabase
let otherPool: ReturnType<typeof openPool>
beforeAll(async () => {
  db = await createTestDatabase()
  otherPool = openPool(db.connection, 10, 'payments_service', () => {})
})
afterAll(async () => {
  await otherPool.end()
  await db.drop()
})

/** As two nodes, which know nothing of each other. */
function nodes(): [SharedAllowances, SharedAllowances] {
  return [nodeWith(openBatches(db.database.pool)), nodeWith(openBatches(otherPool))]
}
const nodeWith = (batches: Pick<Batches, 'run'>) => new SharedAllowances(batches, createLog('silent'))
/** So slow that nothing comes back while a test runs. */
const twenty = { max: 20, refillMs: 3_600_000 }
const allowedOf = (answers: { retryAfterS: number }[]) =>
  answers.filter(({ retryAfterS }) => retryAfterS === 0).length

test('of 200 that ask two nodes at once exactly 20 are allowed, and each is told what is left', async () => {
  for (const name of ['race 1', 'race 2', 'race 3']) {
    const both = nodes()
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) => both[n % 2]?.take(name, 1, twenty) ?? Promise.reject()),
    )
    const allowed = answers.filter(({ retryAfterS }) => retryAfterS === 0)
    expect(allowed.map(({ remaining }) => remaining).toSorted((a, b) => b - a)).toEqual(
      Array.from({ length: 20 }, (_, n) => 19 - n),
    )
    expect(answers.filter(({ retryAfterS }) => retryAfterS > 0)).toHaveLength(180)
  }
})

test('many names at once, in any order on two nodes, each by its own allowance', async () => {
  const both = nodes()
  const names = Array.from({ length: 30 }, (_, n) => `crowd ${n}`)
  const uses = [...names, ...names.toReversed(), ...names].flatMap((name, n) =>
    both.map((node) => node.take(name, (n % 3) + 1, { ...twenty, max: 1_000 })),
  )
  expect(allowedOf(await Promise.all(uses))).toBe(uses.length)
  const [node] = nodes()
  const left = await Promise.all(names.map((name) => node.take(name, 1, { ...twenty, max: 1_000 })))
  const used = left.reduce((sum, { remaining }) => sum + 999 - remaining, 0)
  // What came back while the test ran rounds each of them up by one at most.
  expect(used).toBeGreaterThan(2 * 3 * 60 - 30)
  expect(used).toBeLessThanOrEqual(2 * 3 * 60)
})

test('what was used comes back with time; a refused use uses nothing', async () => {
  const [node, other] = nodes()
  const perSecond = { max: 10, refillMs: 1_000 }
  expect(await node.take('back', 8, perSecond)).toEqual({ remaining: 2, retryAfterS: 0 })
  expect(await other.take('back', 5, perSecond)).toMatchObject({ retryAfterS: 1 })
  expect(await other.take('back', 11, perSecond)).toMatchObject({ retryAfterS: 1 })
  expect(await node.take('back', 2, perSecond)).toMatchObject({ retryAfterS: 0 })
  await db.owner.query(`UPDATE allowance SET whole_at = whole_at - interval '500 ms' WHERE name = 'back'`)
  expect(await nodes()[0].take('back', 5, perSecond)).toMatchObject({ retryAfterS: 0 })
  await db.owner.query(`UPDATE allowance SET whole_at = now() - interval '1 day' WHERE name = 'back'`)
  expect(await nodes()[0].take('back', 10, perSecond)).toEqual({ remaining: 0, retryAfterS: 0 })
})

test('whoever is known to have used up all is refused without a look', async () => {
  let looks = 0
  const batches = openBatches(db.database.pool)
  const node = nodeWith({
    run: (statement, item) => {
      looks += 1
      return batches.run(statement, item)
    },
  })
  for (let n = 0; n < 20; n += 1) await node.take('known', 1, twenty)
  for (let n = 0; n < 50; n += 1) expect((await node.take('known', 1, twenty)).retryAfterS).toBeGreaterThan(0)
  expect(looks).toBe(20)
  expect(node.look('known', twenty)).toMatchObject({ remaining: 0, retryAfterS: 0 })
})

test('while the database fails or hangs each process counts by itself, from what it knows', async () => {
  const batches = openBatches(db.database.pool)
  let run: Batches['run'] = (statement, item) => batches.run(statement, item)
  const node = nodeWith({ run: (statement, item) => run(statement, item) })
  for (let n = 0; n < 15; n += 1) await node.take('alone', 1, twenty)
  run = () => Promise.reject(new Error('gone'))
  const alone = await Promise.all(Array.from({ length: 10 }, () => node.take('alone', 1, twenty)))
  expect(allowedOf(alone)).toBe(5)
  run = () => new Promise(() => {})
  const begun = performance.now()
  expect(await node.take('hung', 1, twenty)).toEqual({ remaining: 19, retryAfterS: 0 })
  expect(performance.now() - begun).toBeGreaterThanOrEqual(limits.allowanceWaitMs - 5)
})

test('who asks again and again is given in advance what it used before, and no more in all', async () => {
  let asked = 0
  const batches = openBatches(db.database.pool)
  const node = nodeWith({
    run: (statement, item) => {
      asked += 1
      return batches.run(statement, item)
    },
  })
  const [other] = nodes()
  const thousand = { max: 1_000, refillMs: 3_600_000 }
  let allowed = 0
  const left: number[] = []
  for (let uses = 0; ; uses += 1) {
    const { retryAfterS, remaining } = await node.take('steady', 1, thousand)
    if (retryAfterS > 0) break
    left.push(remaining)
    allowed += 1
    if (uses % 10 === 0) allowed += allowedOf([await other.take('steady', 1, thousand)])
  }
  expect(allowed).toBeLessThanOrEqual(1_000)
  // What was given in advance and not used is lost; one that asks without a pause loses little.
  expect(allowed).toBeGreaterThan(800)
  expect(asked).toBeLessThan(left.length)
  expect(left).toEqual(left.toSorted((a, b) => b - a))
})

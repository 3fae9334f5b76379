import type pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import {
  type RateLimitState,
  type WindowStore,
  openWindowStore,
  SharedWindow,
} from '../../src/limits/window.ts'
import { openPool } from '../../src/database/client.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { usualWaits } from '../kit/patience.ts'
import { useBounds } from '../kit/use-bounds.ts'
import { waits } from '../../src/shared/waits.ts'

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

const log = createLog('silent')
const storeOf = (pool: Pick<pg.Pool, 'query'>) => openWindowStore(pool, log)
/** A window so long that none ends while a test runs. */
const node = (store: WindowStore, max = 20) => new SharedWindow({ name: 'test', max, windowS: 3_600 }, store)
/** Two nodes without knowledge of each other. */
const nodes = (max = 20): [SharedWindow, SharedWindow] => [
  node(storeOf(db.database.pool), max),
  node(storeOf(otherPool), max),
]
const allowedOf = (answers: RateLimitState[]) => answers.filter(({ allowed }) => allowed).length
const watched = () => {
  const store = storeOf(db.database.pool)
  const watch = { statements: 0 }
  const countingStore: WindowStore = (statement) => {
    watch.statements += 1
    return store(statement)
  }
  return { watch, countingStore }
}
/** Lets time pass, for the database and for nodes that have read nothing yet. */
const age = (key: string, ms: number) =>
  db.owner.query('UPDATE rate_limit_window SET expire = expire - $2 WHERE key = $1', [`test:${key}`, ms])

test('of 200 requests to two nodes at once exactly 20 are allowed, each with the rest', async () => {
  for (const name of ['race 1', 'race 2', 'race 3']) {
    const both = nodes()
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) => both[n % 2]?.take(name, 1) ?? Promise.reject()),
    )
    const allowed = answers.filter((answer) => answer.allowed)
    expect(allowed.map(({ remaining }) => remaining).toSorted((a, b) => b - a)).toEqual(
      Array.from({ length: 20 }, (_, n) => 19 - n),
    )
    expect(answers.filter((answer) => !answer.allowed).every(({ remaining }) => remaining === 0)).toBe(true)
  }
})

test('many keys at once, in any order on two nodes, are each counted by their own points', async () => {
  const both = nodes(1_000)
  const names = Array.from({ length: 30 }, (_, n) => `crowd ${n}`)
  const uses = [...names, ...names.toReversed(), ...names].flatMap((name, n) =>
    both.map((one) => one.take(name, (n % 3) + 1)),
  )
  expect(allowedOf(await Promise.all(uses))).toBe(uses.length)
  const { rows } = await db.owner.query(
    "SELECT sum(points) FROM rate_limit_window WHERE key LIKE 'test:crowd %'",
  )
  // Waiting callers ask together, with their past use: the two nodes get at most as much again.
  expect(Number(rows[0].sum)).toBeGreaterThanOrEqual(2 * 3 * 60)
  expect(Number(rows[0].sum)).toBeLessThanOrEqual(2 * 2 * 3 * 60)
})

test('all is free after the window; each answer has the rest; a refusal uses nothing', async () => {
  const [one, other] = nodes()
  expect(one.look('back')).toMatchObject({ allowed: true, remaining: 20, resetS: 3_600 })
  expect(await one.take('back', 12)).toEqual({
    allowed: true,
    limit: 20,
    windowS: 3_600,
    remaining: 8,
    resetS: 3_600,
  })
  await age('back', 1_800_000)
  const refused = await other.take('back', 9)
  expect(refused).toMatchObject({ allowed: false, remaining: 8 })
  expect(refused.resetS).toBeGreaterThan(1_790)
  expect(refused.resetS).toBeLessThanOrEqual(1_800)
  expect(await other.take('back', 8)).toMatchObject({ allowed: true, remaining: 0 })
  expect(await nodes()[0].take('back', 1)).toMatchObject({ allowed: false, remaining: 0 })
  await age('back', 1_800_000)
  expect(await nodes()[0].take('back', 21)).toMatchObject({ allowed: false, remaining: 20 })
  await age('back', 3_600_000)
  expect(await nodes()[0].take('back', 20)).toMatchObject({ allowed: true, remaining: 0 })
})

test('a window ends by the clock of each process, with the count that the process reserved', async () => {
  const one = new SharedWindow({ name: 'second', max: 3, windowS: 1 }, storeOf(db.database.pool))
  for (let left = 2; left >= 0; left -= 1) expect((await one.take('short', 1)).remaining).toBe(left)
  expect(await one.take('short', 1)).toMatchObject({ allowed: false, resetS: 1 })
  const again = async () => (await one.take('short', 1)).allowed
  await eventually(async () => expect(await again()).toBe(true))
})

test('a caller that has used up its window is refused without a statement', async () => {
  const { watch, countingStore } = watched()
  const one = node(countingStore)
  for (let n = 0; n < 20; n += 1) await one.take('known', 1)
  const { statements } = watch
  for (let n = 0; n < 50; n += 1) expect((await one.take('known', 1)).allowed).toBe(false)
  expect(watch.statements).toBe(statements)
  expect(one.look('known')).toMatchObject({ remaining: 0 })
})

test('while the database fails or hangs each process counts alone', async () => {
  useBounds(waits, { countMs: usualWaits.countMs }, onTestFinished)
  let query: WindowStore = () => Promise.reject(new Error('gone'))
  const one = node((statement) => query(statement))
  const alone = await Promise.all(Array.from({ length: 30 }, () => one.take('alone', 1)))
  expect(allowedOf(alone)).toBe(20)
  query = () => new Promise(() => {})
  const begun = performance.now()
  expect(await one.take('hung', 1)).toMatchObject({ allowed: true, remaining: 19 })
  expect(performance.now() - begun).toBeGreaterThanOrEqual(usualWaits.countMs - 5)
})

test('rows are deleted an hour after their window', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  try {
    const policy = { name: 'test', max: 20, windowS: 3_600 }
    const sweeper = new SharedWindow(policy, storeOf(db.database.pool), true)
    await sweeper.take('over', 1)
    await sweeper.take('not over', 1)
    await age('over', 2 * 3_600_000 + 60_000)
    vi.advanceTimersByTime(5 * 60_000)
  } finally {
    vi.useRealTimers()
  }
  const remainingRows = async () =>
    (await db.owner.query("SELECT key FROM rate_limit_window WHERE key LIKE 'test:%over'")).rows
  await eventually(async () => expect(await remainingRows()).toEqual([{ key: 'test:not over' }]))
})

test('a failing database is logged once, and again at the next failure', async () => {
  const warnings: unknown[] = []
  let isGone = true
  const pool = {
    query: () => (isGone ? Promise.reject(new Error('gone')) : Promise.resolve({ rows: [] })),
  } as unknown as pg.Pool
  const store = openWindowStore(pool, { warn: (...line: unknown[]) => warnings.push(line) } as never)
  const ask = () => store({ text: '' }).catch(() => {})
  await ask()
  await ask()
  expect(warnings).toHaveLength(1)
  isGone = false
  await ask()
  isGone = true
  await ask()
  expect(warnings).toHaveLength(2)
})

test('a steady caller reserves its past use in advance, and gets no more in all', async () => {
  const { watch, countingStore } = watched()
  const one = node(countingStore, 1_000)
  const [, other] = nodes(1_000)
  let allowed = 0
  const remainders: number[] = []
  for (let uses = 0; ; uses += 1) {
    const state = await one.take('steady', 1)
    if (!state.allowed) break
    remainders.push(state.remaining)
    allowed += 1
    if (uses % 10 === 0) allowed += allowedOf([await other.take('steady', 1)])
  }
  expect(allowed).toBeLessThanOrEqual(1_000)
  // The other node still has its reserved part.
  expect(allowed).toBeGreaterThan(890)
  expect(watch.statements).toBeLessThan(30)
  expect(remainders).toEqual(remainders.toSorted((a, b) => b - a))
})

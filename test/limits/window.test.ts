import { afterAll, beforeAll, expect, test } from 'vitest'
import { rateLimitHeaders, sweepRateLimits, takeHit } from '../../src/limits/window.ts'
import { openPool } from '../../src/database/client.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

let db: TestDatabase
let otherPool: ReturnType<typeof openPool>
beforeAll(async () => {
  db = await createTestDatabase()
  otherPool = openPool(db.connection, 10, null, () => {})
})
afterAll(async () => {
  await otherPool.end()
  await db.drop()
})

const policy = { max: 20, windowMs: 15 * 60_000 }
const hitsOf = async (name: string): Promise<unknown[]> => {
  const { rows } = await db.owner.query<{ hits: unknown[] }>('SELECT hits FROM rate_limit WHERE name = $1', [
    name,
  ])
  return rows[0]?.hits ?? []
}
/** Lets time pass: every use under this name moves so far into the past. */
const age = (name: string, ms: number) =>
  db.owner.query(
    `UPDATE rate_limit
     SET hits = ARRAY(SELECT h - make_interval(secs => $2::float8 / 1000) FROM unnest(hits) h)
     WHERE name = $1`,
    [name, ms],
  )

test('of 200 at once over two pools exactly 20 are allowed, in each of three rounds', async () => {
  for (const name of ['race:1', 'race:2', 'race:3']) {
    const hits = Array.from({ length: 200 }, (_, at) =>
      takeHit(at % 2 ? db.database.pool : otherPool, name, policy),
    )
    const states = await Promise.all(hits)
    const allowed = states.filter((state) => state.allowed)
    expect(allowed).toHaveLength(20)
    expect(allowed.map((state) => state.remaining).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, n) => n),
    )
    expect(states.filter((state) => !state.allowed).every((state) => state.remaining === 0)).toBe(true)
  }
})

test('the 21st is refused until the first has left the window, to the second', async () => {
  for (let hit = 0; hit < 20; hit += 1) await takeHit(otherPool, 'edge', policy)
  const refused = await takeHit(otherPool, 'edge', policy)
  expect(refused).toMatchObject({ allowed: false, limit: 20, remaining: 0, windowS: 900 })
  expect(refused.resetS).toBeGreaterThan(840)
  expect(refused.resetS).toBeLessThanOrEqual(900)
  await age('edge', policy.windowMs - 60_000)
  const almost = await takeHit(otherPool, 'edge', policy)
  expect(almost).toMatchObject({ allowed: false })
  expect(almost.resetS).toBeLessThanOrEqual(60)
  await age('edge', 60_000)
  expect(await takeHit(otherPool, 'edge', policy)).toMatchObject({ allowed: true, remaining: 19 })
})

test('the window slides: late uses count on after early ones are free', async () => {
  const small = { max: 3, windowMs: 600_000 }
  await takeHit(otherPool, 'slide', small)
  await age('slide', 400_000)
  await takeHit(otherPool, 'slide', small)
  await takeHit(otherPool, 'slide', small)
  const early = await takeHit(otherPool, 'slide', small)
  expect(early.allowed).toBe(false)
  expect(early.resetS).toBeLessThanOrEqual(200)
  await age('slide', 200_000)
  expect(await takeHit(otherPool, 'slide', small)).toMatchObject({ allowed: true, remaining: 0 })
  const late = await takeHit(otherPool, 'slide', small)
  expect(late.allowed).toBe(false)
  expect(late.resetS).toBeGreaterThan(300)
  expect(late.resetS).toBeLessThanOrEqual(400)
})

test('refusals do not lengthen the wait, and no row grows beyond its limit and a mark', async () => {
  const small = { max: 2, windowMs: 60_000 }
  await takeHit(otherPool, 'patient', small)
  await takeHit(otherPool, 'patient', small)
  const refusals = []
  for (let at = 0; at < 30; at += 1) refusals.push(await takeHit(otherPool, 'patient', small))
  expect(refusals.every((state) => !state.allowed)).toBe(true)
  expect(await hitsOf('patient')).toHaveLength(3)
  await age('patient', (refusals.at(-1)?.resetS ?? 0) * 1_000)
  expect(await takeHit(otherPool, 'patient', small)).toMatchObject({ allowed: true })
})

test('names do not share their hits', async () => {
  const one = { max: 1, windowMs: 60_000 }
  expect(await takeHit(otherPool, 'mine', one)).toMatchObject({ allowed: true, remaining: 0, resetS: 60 })
  expect(await takeHit(otherPool, 'yours', one)).toMatchObject({ allowed: true })
  expect(await takeHit(otherPool, 'mine', one)).toMatchObject({ allowed: false })
})

test('the sweep deletes the names without use for a window, and no other', async () => {
  const one = { max: 1, windowMs: 60 * 60_000 }
  for (const name of ['quiet', 'quiet and refused', 'busy']) await takeHit(otherPool, name, one)
  await takeHit(otherPool, 'quiet and refused', one)
  await age('busy', one.windowMs - 60_000)
  await age('quiet', one.windowMs + 1)
  await age('quiet and refused', one.windowMs + 1)
  await db.owner.query(
    `INSERT INTO rate_limit
     SELECT 'old:' || n, ARRAY[now() - interval '1 day'] FROM generate_series(1, 2500) n`,
  )
  const sweep = () => sweepRateLimits(db.database.pool)
  expect([await sweep(), await sweep(), await sweep()]).toEqual([1_000, 1_000, 502])
  expect(await hitsOf('quiet')).toEqual([])
  expect(await hitsOf('quiet and refused')).toEqual([])
  expect(await hitsOf('busy')).toHaveLength(1)
  expect(await sweep()).toBe(0)
})

test('headers name the policy, the remaining count and the time; Retry-After only after a refusal', () => {
  const allowed = { allowed: true, limit: 20, windowS: 900, remaining: 3, resetS: 120 }
  expect(rateLimitHeaders('auth', allowed)).toEqual({
    'RateLimit-Policy': '"auth";q=20;w=900',
    RateLimit: '"auth";r=3;t=120',
  })
  expect(rateLimitHeaders('auth', { ...allowed, allowed: false, remaining: 0 })).toEqual({
    'RateLimit-Policy': '"auth";q=20;w=900',
    RateLimit: '"auth";r=0;t=120',
    'Retry-After': '120',
  })
})

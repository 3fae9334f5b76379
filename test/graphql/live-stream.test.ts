import { afterAll, beforeEach, expect, test } from 'vitest'
import type { Context } from '../../src/context.ts'
import { liveStream, watchActor } from '../../src/graphql/live-stream.ts'
import { limits } from '../../src/shared/limits.ts'
import { createFixture, until } from './fixtures.ts'

const fixture = createFixture('sandbox')
const { services, ticks } = fixture
afterAll(() => fixture.close())
beforeEach(() => services.streams.clear())

async function contextOf(token: string): Promise<Context> {
  const actor = await services.access.tokens.verifyToken(token)
  return { ...services, actor, clientAddress: null, lastEventId: null } as Context
}

const follow = (ctx: Context) =>
  liveStream(
    ctx,
    (signal) => ticks.after(0, signal),
    ({ n }) => `cursor ${n}`,
  )
const breaks = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('broken')) }),
}
const over = { done: true, value: undefined }

test('gives the events, remembers the last cursor, and frees its place when the source ends', async () => {
  const ctx = await contextOf(fixture.issue())
  const stream = liveStream(
    ctx,
    async function* () {
      yield 7
      yield 8
    },
    String,
  )
  expect(services.streams.size).toBe(2)
  expect(await stream.next()).toEqual({ value: 7, done: false })
  expect(ctx.lastEventId).toBe('7')
  await stream.next()
  expect(await stream.next()).toEqual(over)
  expect([ctx.lastEventId, services.streams.size]).toEqual(['8', 0])
})

test('a reader that leaves while the source waits ends it at once', async () => {
  const stream = follow(await contextOf(fixture.issue()))
  const waiting = stream.next()
  await until(() => ticks.open === 1)
  expect(await stream.return?.()).toEqual(over)
  expect(await waiting).toEqual(over)
  await until(() => ticks.open === 0)
  expect(services.streams.size).toBe(0)
  expect(await stream.next()).toEqual(over)
})

test('even a source that ignores the signal does not hold the reader', async () => {
  const stream = liveStream(
    await contextOf(fixture.issue()),
    () => ({
      [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }),
    }),
    String,
  )
  const waiting = stream.next()
  await stream.return?.()
  expect(await waiting).toEqual(over)
})

test('a stream that never began frees its place too', async () => {
  await follow(await contextOf(fixture.issue())).return?.()
  expect(services.streams.size).toBe(0)
})

test('a source that breaks is thrown once, and frees the place', async () => {
  const stream = liveStream(await contextOf(fixture.issue()), () => breaks, String)
  await expect(stream.next()).rejects.toThrow('broken')
  expect(await stream.next()).toEqual(over)
  expect(services.streams.size).toBe(0)
})

test.each([true, false])(
  'a revoked token is thrown to the reader, waiting or not (%s)',
  async (isWaiting) => {
    const token = fixture.issue()
    const stream = follow(await contextOf(token))
    const waiting = isWaiting ? stream.next().catch((error: unknown) => error) : null
    fixture.revoke(token)
    await until(() => services.streams.size === 0, 1_000)
    const thrown = waiting ?? stream.next().catch((error: unknown) => error)
    expect(await thrown).toMatchObject({ code: 'UNAUTHENTICATED' })
    expect(await stream.next()).toEqual(over)
  },
)

test('a token holds up to its limit of places, a merchant likewise', async () => {
  const ctx = await contextOf(fixture.issue())
  const streams = Array.from({ length: limits.subscriptionsPerTokenMax }, () => follow(ctx))
  expect(() => follow(ctx)).toThrow(
    expect.objectContaining({ extensions: { code: 'TOO_MANY_SUBSCRIPTIONS', limit: 20 } }),
  )
  await streams[0]?.return?.()
  await streams[0]?.return?.()
  follow(ctx)
  expect(() => follow(ctx)).toThrow('at most 20')
  services.streams.set('merchant:1', limits.subscriptionsPerMerchantMax)
  const other = await contextOf(fixture.issue())
  expect(() => follow(other)).toThrow('A merchant has at most')
})

test('nobody in particular has no stream', () => {
  const ctx = { ...services, actor: null } as Context
  expect(() => follow(ctx)).toThrow(expect.objectContaining({ code: 'UNAUTHENTICATED' }))
})

test('a watch tells the end of the token once, on time, also where it lies months ahead', async () => {
  const ended: string[] = []
  const soon = await contextOf(fixture.issue({ expiresInMs: 100 }))
  const far = await contextOf(fixture.issue({ expiresInMs: 40 * 86_400_000 }))
  const stops = [soon, far].map((ctx) => watchActor(ctx, ctx.actor as never, (why) => ended.push(why)))
  const began = performance.now()
  await until(() => ended.length > 0)
  expect(performance.now() - began).toBeLessThan(250)
  await new Promise((resolve) => setTimeout(resolve, limits.credentialFreshMs * 2))
  expect(ended).toEqual(['UNAUTHENTICATED'])
  for (const stop of stops) stop()
})

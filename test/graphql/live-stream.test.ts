import { afterAll, beforeEach, expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import type { Context } from '../../src/context.ts'
import { liveStream, watchActor } from '../../src/graphql/live-stream.ts'
import { credentialFreshMs } from '../../src/identity/callers/credentials.ts'
import { limits } from '../../src/shared/limits.ts'
import { createFixture, logOf } from '../kit/graphql.ts'

const fixture = createFixture('sandbox')
const { services, ticks } = fixture
afterAll(() => fixture.close())
beforeEach(() => services.streams.clear())

async function contextOf(token: string): Promise<Context> {
  const actor = await services.access.tokens.verifyToken(token)
  return { ...services, actor, clientAddress: null, lastEventId: null } as Context
}

const follow = (ctx: Context) => liveStream(ctx, logOf(ticks, '0'))

test('a stream takes a slot and returns it at its end, once', async () => {
  const ctx = await contextOf(fixture.issue())
  const [stream, other] = [follow(ctx), follow(ctx)]
  expect(services.streams.get('merchant:1')).toBe(2)
  stream.end(null)
  stream.end(null)
  expect([services.streams.get('merchant:1'), stream.signal.aborted, stream.why]).toEqual([1, true, null])
  other.end(null)
  expect(services.streams.size).toBe(0)
})

test("a stream reads its log from its reader's cursor", async () => {
  ticks.advance(3)
  const stream = liveStream(await contextOf(fixture.issue()), logOf(ticks, '1'))
  const seen: number[] = []
  for await (const { n } of stream) {
    seen.push(n)
    if (n === 3) stream.end(null)
  }
  expect(seen).toEqual([2, 3])
  await eventually(() => ticks.open === 0)
})

test('a stream ends with the reason when its token is revoked', async () => {
  const token = fixture.issue()
  const stream = follow(await contextOf(token))
  fixture.revoke(token)
  await eventually(() => stream.signal.aborted)
  expect(stream.why).toMatchObject({ code: 'UNAUTHENTICATED' })
  expect(services.streams.size).toBe(0)
})

test('a token holds slots up to its limit, and so does a merchant', async () => {
  const ctx = await contextOf(fixture.issue())
  const streams = Array.from({ length: limits.subscriptionsPerTokenMax }, () => follow(ctx))
  expect(() => follow(ctx)).toThrow(
    expect.objectContaining({ extensions: { code: 'TOO_MANY_SUBSCRIPTIONS', limit: 20 } }),
  )
  streams[0]?.end(null)
  streams[0]?.end(null)
  follow(ctx)
  expect(() => follow(ctx)).toThrow('at most 20')
  services.streams.set('merchant:1', limits.subscriptionsPerMerchantMax)
  const other = await contextOf(fixture.issue())
  expect(() => follow(other)).toThrow('A merchant has at most')
})

test('a caller who is not signed in gets no stream', () => {
  const ctx = { ...services, actor: null } as Context
  expect(() => follow(ctx)).toThrow(expect.objectContaining({ code: 'UNAUTHENTICATED' }))
})

test('a watch announces the end of its token once, and none that is months ahead', async () => {
  const ended: string[] = []
  const soon = await contextOf(fixture.issue({ expiresInMs: 100 }))
  const far = await contextOf(fixture.issue({ expiresInMs: 40 * 86_400_000 }))
  const stops = [soon, far].map((ctx) => watchActor(ctx, ctx.actor as never, (why) => ended.push(why)))
  await eventually(() => ended.length > 0)
  await new Promise((resolve) => setTimeout(resolve, credentialFreshMs * 2))
  expect(ended).toEqual(['expired'])
  for (const stop of stops) stop()
})

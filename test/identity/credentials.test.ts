import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { Actor } from '../../src/identity/callers/actor.ts'
import { regenerateApiKey, revokeApiKey } from '../../src/identity/keys/api-keys.ts'
import {
  credentialFreshMs,
  CredentialWatch,
  type RevocationReason,
} from '../../src/identity/callers/credentials.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { borrow } from '../kit/client.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { eventually } from '../kit/eventually.ts'
import { deactivate, makeMerchant, master, type SignedInMerchant } from '../kit/merchants.ts'
import { usualWaits } from '../kit/patience.ts'
import { useBounds } from '../kit/use-bounds.ts'
import { waits } from '../../src/shared/waits.ts'

let db: TestDatabase
let watch: CredentialWatch
let queries: number[][] = []
beforeAll(async () => {
  db = await createTestDatabase()
})
beforeEach(() => {
  watch = new CredentialWatch(listeningPool(db.database.pool), createLog('silent'))
})
afterEach(() => watch.close())
afterAll(() => db.drop())

/** The real pool; it also records the keys that each query looks up. */
function listeningPool(pool: typeof db.database.pool): typeof pool {
  const query = (config: { text: string; values: [number[]] }) => {
    queries.push(config.values[0])
    return pool.query(config)
  }
  return Object.create(pool, { query: { value: query } })
}

const actorOf = ({ merchantId, apiKeyId }: SignedInMerchant, more: Partial<Actor> = {}): Actor => ({
  merchantId,
  apiKeyId,
  apiKeyVersion: 1,
  scopes: new Set(['pay']),
  tokenId: 'b7a0a2a1-0000-4000-8000-000000000000',
  expiresAt: new Date(Date.now() + 3_600_000),
  memberId: null,
  role: null,
  readsOnly: false,
  keyLimits: null,
  ...more,
})
const ended = (actor: Actor, address: string | null = '192.0.2.1') =>
  new Promise<RevocationReason>((resolve) => watch.onRevoked(actor, address, resolve))
const refused = { code: 'UNAUTHENTICATED' }
const living = { whitelist: [] }

test('a valid key gives its merchant’s whitelist', async () => {
  const shop = await makeMerchant(db.database.pool, { whitelist: ['192.0.2.0/24'] })
  expect(await watch.check(actorOf(shop))).toMatchObject({ whitelist: ['192.0.2.0/24'], role: null })
})

test('an unknown key, another version, another merchant or an ended token is refused', async () => {
  const [shop, other] = [await makeMerchant(db.database.pool), await makeMerchant(db.database.pool)]
  const wrong: Partial<Actor>[] = [
    { apiKeyId: 999_999 },
    { apiKeyVersion: 2 },
    { apiKeyVersion: 0 },
    { merchantId: other.merchantId },
    { expiresAt: new Date(Date.now() - 6_000) },
  ]
  for (const more of wrong) await expect(watch.check(actorOf(shop, more))).rejects.toMatchObject(refused)
})

/** Stops the clock of the service until the end of the test, and its rounds from now on. */
function stopClock(): void {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
}

test('a thousand checks of fifty keys at once are one query', async () => {
  stopClock()
  const shops = await Promise.all(Array.from({ length: 50 }, () => makeMerchant(db.database.pool)))
  queries = []
  await Promise.all(
    Array.from({ length: 1_000 }, (_, n) => watch.check(actorOf(shops[n % 50] as SignedInMerchant))),
  )
  expect(queries).toHaveLength(1)
  expect(queries[0]).toHaveLength(50)
  await Promise.all(shops.map((shop) => watch.check(actorOf(shop))))
  expect(queries).toHaveLength(1)
})

test('keys that are looked up while a query runs share the next one', async () => {
  const [a, b, c] = await Promise.all([1, 2, 3].map(() => makeMerchant(db.database.pool)))
  queries = []
  const first = watch.check(actorOf(a as SignedInMerchant))
  await new Promise((resolve) => setImmediate(resolve))
  await Promise.all([
    first,
    watch.check(actorOf(b as SignedInMerchant)),
    watch.check(actorOf(c as SignedInMerchant)),
  ])
  expect(queries).toEqual([[a?.apiKeyId], [b?.apiKeyId, c?.apiKeyId]])
})

test('a query for one key also looks up the keys in use', async () => {
  stopClock()
  const shops = await Promise.all(Array.from({ length: 10 }, () => makeMerchant(db.database.pool)))
  const checkAll = () => Promise.all(shops.map((shop) => watch.check(actorOf(shop))))
  queries = []
  await checkAll()
  vi.advanceTimersByTime(credentialFreshMs)
  const [first] = shops as [SignedInMerchant]
  await watch.check(actorOf(first))
  await revokeApiKey(db.database.pool, shops[1] as SignedInMerchant)
  await checkAll()
  expect(queries.map((ids) => ids.length)).toEqual([10, 10])
  watch.forget(shops[1]?.apiKeyId ?? 0)
  await expect(checkAll()).rejects.toMatchObject(refused)
})

test('forgetting a key makes the next check see the database', async () => {
  stopClock()
  const shop = await makeMerchant(db.database.pool)
  await watch.check(actorOf(shop))
  await revokeApiKey(db.database.pool, shop)
  expect(await watch.check(actorOf(shop))).toMatchObject(living)
  watch.forget(shop.apiKeyId)
  await expect(watch.check(actorOf(shop))).rejects.toMatchObject(refused)
})

test('an answer that was under way while its key was forgotten is not kept', async () => {
  const { pool } = db.database
  const shop = await makeMerchant(pool)
  const arrived = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const query = async (config: pg.QueryConfig) => {
    const answer = await pool.query(config)
    arrived.resolve()
    await gate.promise
    return answer
  }
  const slow = new CredentialWatch(Object.create(pool, { query: { value: query } }), createLog('silent'))
  const before = slow.check(actorOf(shop))
  await arrived.promise
  await revokeApiKey(pool, shop)
  slow.forget(shop.apiKeyId)
  const after = slow.check(actorOf(shop))
  gate.resolve()
  expect(await before).toMatchObject(living)
  await expect(after).rejects.toMatchObject(refused)
  slow.close()
})

test('no answer is kept longer than its time', async () => {
  const shop = await makeMerchant(db.database.pool)
  await watch.check(actorOf(shop))
  await deactivate(db.database.pool, shop.merchantId)
  const check = () => watch.check(actorOf(shop))
  await eventually(() => expect(check()).rejects.toMatchObject({ code: 'ACCOUNT_INACTIVE' }))
})

test('an end is known to checks and watchers within a second, by the clock of the service', async () => {
  stopClock()
  const other = new CredentialWatch(listeningPool(db.database.pool), createLog('silent'))
  onTestFinished(() => other.close())
  const shop = await makeMerchant(db.database.pool)
  expect(await other.check(actorOf(shop))).toMatchObject(living)
  const reasons: RevocationReason[] = []
  other.onRevoked(actorOf(shop), null, (why) => reasons.push(why))
  await revokeApiKey(db.database.pool, shop)
  // The known state stays in use until the clock goes on.
  expect(await other.check(actorOf(shop))).toMatchObject(living)
  expect(reasons).toEqual([])
  // A round that begins now reads the end; of the second, the rest is for its query.
  vi.advanceTimersByTime(credentialFreshMs)
  expect(credentialFreshMs).toBeLessThanOrEqual(500)
  await expect(other.check(actorOf(shop))).rejects.toMatchObject(refused)
  await eventually(() => expect(reasons).toEqual(['revoked']))
})

test('a watcher learns why its credential ended, once', async () => {
  const { pool } = db.database
  const [a, b, c, d] = await Promise.all([1, 2, 3, 4].map(() => makeMerchant(pool)))
  const [regenerated, revoked, inactive, moved] = [a, b, c, d] as [
    SignedInMerchant,
    SignedInMerchant,
    SignedInMerchant,
    SignedInMerchant,
  ]
  const reasons = [regenerated, revoked, inactive, moved].map((shop) => ended(actorOf(shop)))
  reasons.push(
    ended(actorOf(moved), null),
    ended(actorOf(moved, { expiresAt: new Date(Date.now() - 4_900) })),
  )
  await Promise.all([
    regenerateApiKey(pool, master, regenerated),
    revokeApiKey(pool, revoked),
    deactivate(pool, inactive.merchantId),
    pool.query(`UPDATE merchant SET ip_whitelist = '{198.51.100.0/24}' WHERE id = $1`, [moved.merchantId]),
  ])
  expect(await Promise.all(reasons)).toEqual([
    'revoked',
    'revoked',
    'ACCOUNT_INACTIVE',
    'ADDRESS_NOT_ALLOWED',
    'ADDRESS_NOT_ALLOWED',
    'expired',
  ])
})

test('one query per round looks up all watched keys, and a closed watch is not called', async () => {
  const shops = await Promise.all(Array.from({ length: 20 }, () => makeMerchant(db.database.pool)))
  const calls: RevocationReason[] = []
  const leave = shops.flatMap((shop) => [
    watch.onRevoked(actorOf(shop), null, (why) => calls.push(why)),
    watch.onRevoked(actorOf(shop), null, (why) => calls.push(why)),
  ])
  queries = []
  const [first, ...others] = shops as [SignedInMerchant, ...SignedInMerchant[]]
  const round = ended(actorOf(first))
  leave.slice(0, 2).forEach((stop) => stop())
  await revokeApiKey(db.database.pool, first)
  await round
  expect(queries.every((ids) => ids.length === others.length + 1)).toBe(true)
  expect(queries.length).toBeLessThanOrEqual(2)
  expect(calls).toEqual([])
  leave.forEach((stop) => stop())
})

test('a query that fails rejects its callers, and the next check asks again', async () => {
  const shop = await makeMerchant(db.database.pool)
  const cut = Object.create(db.database.pool, {
    query: {
      value: () => (fails ? Promise.reject(new Error('gone')) : db.database.pool.query(queryOf(shop))),
    },
  })
  let fails = true
  const other = new CredentialWatch(cut, createLog('silent'))
  await expect(other.check(actorOf(shop))).rejects.toThrow('gone')
  fails = false
  expect(await other.check(actorOf(shop))).toMatchObject(living)
  other.close()
})

test('a query without an answer is given up after three seconds', async () => {
  useBounds(waits, { credentialsMs: usualWaits.credentialsMs }, onTestFinished)
  const shop = await makeMerchant(db.database.pool)
  const client = await borrow(db.owner)
  await client.query('BEGIN; LOCK TABLE api_key')
  // Its own bound ends it: the lock, the statement and the answer have longer ones here.
  await expect(watch.check(actorOf(shop))).rejects.toMatchObject({ code: 'OVERLOADED' })
  await client.query('ROLLBACK')
  client.release()
  expect(await watch.check(actorOf(shop))).toMatchObject(living)
})

test('a caller gets a refusal to retry later when the database is silent for three seconds', async () => {
  useBounds(waits, { credentialsMs: usualWaits.credentialsMs }, onTestFinished)
  const shop = await makeMerchant(db.database.pool)
  const query = ({ query_timeout }: { query_timeout: number }) =>
    db.database.pool.query({ text: 'SELECT pg_sleep(4)', query_timeout } as pg.QueryConfig)
  const hanging = Object.create(db.database.pool, { query: { value: query } })
  const other = new CredentialWatch(hanging, createLog('silent'))
  await expect(other.check(actorOf(shop))).rejects.toMatchObject({ code: 'OVERLOADED' })
  other.close()
})

const queryOf = (shop: SignedInMerchant) => ({
  text: `SELECT id, merchant_id AS "merchantId", version, false AS "isRevoked", true AS "isMerchantActive",
                '{}'::text[] AS whitelist FROM api_key WHERE id = $1`,
  values: [shop.apiKeyId],
})

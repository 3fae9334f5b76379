import { createClient as createSseClient } from 'graphql-sse'
import { createClient } from 'graphql-ws'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { eventually } from '../kit/eventually.ts'
import { regenerateApiKey } from '../../src/identity/keys/api-keys.ts'
import { deactivateMerchant } from '../../src/resources/merchants/deactivate.ts'
import { makeMember } from '../kit/members.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'

const follow = 'subscription { transactionChanged { sequence } }'

let service: TestApp
beforeAll(async () => {
  service = await startTestApp()
})
afterAll(() => service.close())

test('a token that expires ends its live streams, and not before', async () => {
  const shop = await service.merchant()
  const { rows } = await service.database.owner.query<{ id: number }>(
    'SELECT id FROM api_key WHERE merchant_id = $1',
    [shop.merchantId],
  )
  const issued = await service.app.services.access.tokens.issueToken({
    merchantId: shop.merchantId,
    apiKeyId: rows[0]?.id ?? 0,
    apiKeyVersion: 1,
    scopes: ['balance'],
    hours: 3 / 3_600,
  })
  const ends = await openStreams({ ...shop, token: issued.token })
  const seen = await Promise.all(ends)
  expect(seen).toEqual(['4403', 'UNAUTHENTICATED'])
  expect(Date.now()).toBeGreaterThanOrEqual(issued.expiresAt.getTime() - 50)
})

/** Opens both kinds of live stream of one merchant. @returns the reason that ends each */
async function openStreams(shop: Pick<TestMerchant, 'merchantId' | 'token'>): Promise<Promise<string>[]> {
  const opened: Promise<void>[] = []
  const socketEnd = new Promise<string>((resolve) => {
    const client = createClient({
      url: `${service.url.replace('http', 'ws')}/graphql`,
      webSocketImpl: WebSocket,
      lazy: false,
      onNonLazyError: () => {},
      retryAttempts: 0,
      connectionParams: { authorization: `Bearer ${shop.token}` },
      on: { closed: (event) => resolve(String((event as { code: number }).code)) },
    })
    opened.push(new Promise((ready) => client.on('connected', () => ready())))
    client.subscribe({ query: follow }, { next: () => {}, error: () => {}, complete: () => {} })
  })
  const events = createSseClient({
    url: `${service.url}/graphql`,
    retryAttempts: 0,
    headers: { Authorization: `Bearer ${shop.token}` },
  })
  const eventsEnd = new Promise<string>((resolve) => {
    events.subscribe(
      { query: follow },
      {
        next: ({ errors }) => {
          if (errors?.[0]) resolve(String(errors[0].extensions?.['code']))
        },
        error: (error) => resolve(String(error)),
        complete: () => resolve('complete'),
      },
    )
  })
  await Promise.all(opened)
  await eventually(() => expect(service.app.services.streams.get(`merchant:${shop.merchantId}`)).toBe(2))
  return [socketEnd, eventsEnd]
}

test('regenerating the key ends its live streams and its token', async () => {
  const shop = await service.merchant()
  const ends = await openStreams(shop)
  const { pool } = service.app.services.database
  const { rows } = await pool.query('SELECT id FROM api_key WHERE merchant_id = $1', [shop.merchantId])
  await regenerateApiKey(pool, service.app.services.access.master, {
    merchantId: shop.merchantId,
    apiKeyId: rows[0].id,
  })
  expect(await Promise.all(ends)).toEqual(['4403', 'UNAUTHENTICATED'])
  expect((await service.rest('GET', '/balance', { token: shop.token })).status).toBe(401)
  await eventually(() =>
    expect(service.app.services.streams.get(`merchant:${shop.merchantId}`)).toBeUndefined(),
  )
})

test('deactivating the account ends its live streams and answers 403', async () => {
  const shop = await service.merchant()
  const ends = await openStreams(shop)
  await deactivateMerchant(service.app.services, shop.merchantId)
  expect(await Promise.all(ends)).toEqual(['4403', 'ACCOUNT_INACTIVE'])
  expect((await service.rest('GET', '/balance', { token: shop.token })).status).toBe(403)
})

test.each([
  ['another role', 'PUT', '/role', { role: 'viewer' }],
  ['removal', 'DELETE', '', undefined],
])('%s, on another node, ends the live streams of a member', async (_how, method, path, body) => {
  const shop = await service.merchant()
  const other = await service.sibling()
  const member = await makeMember(service.app.services.access, shop.merchantId, 'finance')
  const ends = await openStreams(member)
  const changed = await fetch(`${other}/merchant/api/team/${member.memberId}${path}`, {
    method,
    headers: { Authorization: `Bearer ${shop.token}`, 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  expect(changed.status).toBe(200)
  expect(await Promise.all(ends)).toEqual(['4403', 'UNAUTHENTICATED'])
  expect((await service.rest('GET', '/balance', { token: member.token })).status).toBe(401)
})

import { createPrivateKey, type KeyObject } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { decrypt } from '../../../src/identity/secrets/encrypt.ts'
import { openForge } from '../../kit/altered-tokens.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'

// Every altered token, over every protocol: forged with the service's own key, in the name of a real
// merchant.

let service: TestApp
let shop: TestMerchant
let other: TestMerchant
let apiKeyId: number
let signing: { kid: string; publicJwk: { x: string }; ourKey: KeyObject }
beforeAll(async () => {
  service = await startTestApp()
  shop = await service.merchant()
  other = await service.merchant()
  const { owner } = service.database
  const keys = await owner.query('SELECT id FROM api_key WHERE merchant_id = $1', [shop.merchantId])
  apiKeyId = keys.rows[0].id
  const {
    kid,
    public_key: publicJwk,
    encrypted_private,
  } = (await owner.query('SELECT * FROM signing_key')).rows[0]
  const der = decrypt(service.app.services.access.master.encryptionKey, encrypted_private, kid)
  signing = { kid, publicJwk, ourKey: createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }) }
})
afterAll(() => service.close())

const { altered, sign } = openForge(() => ({
  ...signing,
  names: { sub: String(shop.merchantId), key: apiKeyId, kv: 1 },
}))

/** The answer of each protocol to a token. */
async function answersTo(token: string): Promise<{ rest: number; graphql: unknown; socket: number }> {
  const [rest, graphql, socket] = await Promise.all([
    service.rest('GET', '/balance', { token }),
    service.graphql('{ balance { available } }', {}, token || ' '),
    handshake(token),
  ])
  const { errors, data } = graphql.body
  return { rest: rest.status, graphql: errors?.[0].extensions.code ?? data ?? graphql.status, socket }
}

/** @returns the code that the socket closes with; 1000 where its token was acknowledged */
function handshake(token: string): Promise<number> {
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws')
  return new Promise((resolve, reject) => {
    socket.on('open', () =>
      socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } })),
    )
    socket.on('message', () => socket.close(1000))
    socket.on('close', resolve)
    socket.on('error', reject)
  })
}

test('the base of the altered tokens is accepted over every protocol', async () => {
  expect(await answersTo(await sign())).toEqual({
    rest: 200,
    graphql: { balance: { available: 0 } },
    socket: 1000,
  })
})

const refused = { rest: 401, graphql: 'UNAUTHENTICATED', socket: 4403 }
const vectors: typeof altered = {
  ...altered,
  'another merchant under our key': () => sign({ sub: String(other.merchantId) }),
  'a key that is not there': () => sign({ key: 999_999 }),
  'a version of the key that is not yet': () => sign({ kv: 2 }),
  'a key beyond every id': () => sign({ key: 2 ** 40 }),
  'a merchant beyond every id': () => sign({ sub: '9999999999' }),
}

test.each(Object.entries(vectors))('no protocol accepts: %s', async (_name, make) => {
  const token = await make()
  // Node refuses a token that is too large for the headers, before the service.
  const isTooLong = token.length > 15_000
  expect(await answersTo(token)).toEqual(isTooLong ? { ...refused, rest: 431, graphql: 431 } : refused)
})

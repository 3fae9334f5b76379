import { createPrivateKey, type KeyObject } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { encrypt, decrypt } from '../../src/identity/secrets/encrypt.ts'
import { MasterSecret } from '../../src/identity/secrets/secrets.ts'
import { openSigningKeys } from '../../src/identity/secrets/signing-keys.ts'
import { createTokens, type Tokens } from '../../src/identity/callers/tokens.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { nowS, openForge } from '../kit/altered-tokens.ts'
import { master } from '../kit/merchants.ts'

let db: TestDatabase
let tokens: Tokens
let ourKey: KeyObject
let kid = ''
let publicJwk: { x: string }

beforeAll(async () => {
  db = await createTestDatabase()
  tokens = createTokens(await openSigningKeys(db.database.pool, master))
  const { rows } = await db.owner.query('SELECT * FROM signing_key')
  kid = rows[0].kid
  publicJwk = rows[0].public_key
  const encrypted = decrypt(master.encryptionKey, rows[0].encrypted_private, kid)
  ourKey = createPrivateKey({ key: encrypted, format: 'der', type: 'pkcs8' })
})
afterAll(() => db.drop())

const grant = {
  merchantId: 12,
  apiKeyId: 34,
  apiKeyVersion: 5,
  scopes: ['pay', 'balance'] as const,
  hours: 2,
}
const refused = { code: 'UNAUTHENTICATED' }
const { altered, claims, header, sign, signAsIs } = openForge(() => ({
  ourKey,
  kid,
  publicJwk,
  names: { sub: '12', key: 34, kv: 5 },
}))

test('a token carries the grant, for exactly its hours, and no secret', async () => {
  const { token, expiresIn, expiresAt } = await tokens.issueToken(grant)
  const payload = decodeJwt(token)
  expect(decodeProtectedHeader(token)).toEqual({ alg: 'EdDSA', typ: 'at+jwt', kid })
  expect(payload).toEqual({
    ...claims(),
    iat: payload.iat,
    nbf: payload.iat,
    exp: (payload.iat ?? 0) + 7_200,
    jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
  })
  expect(expiresIn).toBe(7_200)
  expect(expiresAt.getTime()).toBe((payload.exp ?? 0) * 1_000)
})

test('verifying a token gives the actor, the first time and from memory', async () => {
  const { token, expiresAt } = await tokens.issueToken(grant)
  const expected = {
    merchantId: 12,
    apiKeyId: 34,
    apiKeyVersion: 5,
    scopes: new Set(['pay', 'balance']),
    tokenId: decodeJwt(token).jti,
    expiresAt,
    memberId: null,
    role: null,
    readsOnly: false,
    keyLimits: null,
  }
  const first = await tokens.verifyToken(token)
  expect(first).toEqual(expected)
  expect(await tokens.verifyToken(token)).toBe(first)
})

test('a token carries its limits; a token with unknown limits is refused', async () => {
  const keyLimits = {
    maxPerPayment: 5_000n,
    maxPerDay: null,
    paymentMethods: ['OperatorA'] as const,
    addresses: ['192.0.2.0/24'],
  }
  const { token } = await tokens.issueToken({ ...grant, keyLimits })
  expect(await tokens.verifyToken(token)).toMatchObject({ keyLimits })
  for (const strange of [{ paymentMethods: ['OperatorE'] }, { maxPerDay: 'much' }, { maxPerHour: 1 }, []])
    await expect(tokens.verifyToken(await sign({ keyLimits: strange }))).rejects.toMatchObject(refused)
})

test('the base of the altered tokens is accepted', async () => {
  for (const token of [await sign(), signAsIs(header())]) {
    expect(await tokens.verifyToken(token)).toMatchObject({ merchantId: 12 })
  }
})

test.each(Object.entries(altered))('an altered token is refused: %s', async (_name, make) => {
  const token = await make()
  await expect(tokens.verifyToken(token)).rejects.toMatchObject(refused)
  // It is refused the second time as well.
  await expect(tokens.verifyToken(token)).rejects.toMatchObject(refused)
})

test('clocks may differ by five seconds', async () => {
  const past = nowS() - 60
  for (const more of [{ exp: nowS() - 3, iat: past, nbf: past }, { nbf: nowS() + 4 }]) {
    expect(await tokens.verifyToken(await sign(more))).toMatchObject({ merchantId: 12 })
  }
})

test('a remembered token ends when its time is over', async () => {
  const token = await sign({ exp: nowS() - 3, iat: nowS() - 60, nbf: nowS() - 60 })
  await tokens.verifyToken(token)
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 2_500 })
  try {
    await expect(tokens.verifyToken(token)).rejects.toMatchObject(refused)
  } finally {
    vi.useRealTimers()
  }
})

test('a scope that this version does not know allows nothing', async () => {
  const { scopes } = await tokens.verifyToken(await sign({ scope: 'pay everything' }))
  expect([...scopes]).toEqual(['pay'])
})

test('a database failure is no refusal', async () => {
  const gone = {
    ...(await openSigningKeys(db.database.pool, master)),
    find: () => Promise.reject(new Error('gone')),
  }
  await expect(createTokens(gone).verifyToken(await sign())).rejects.toThrow('gone')
})

test('five processes at their first start make one key and read each other’s tokens', async () => {
  const newDatabase = await createTestDatabase()
  const opened = await Promise.all(
    Array.from({ length: 5 }, async () =>
      createTokens(await openSigningKeys(newDatabase.database.pool, master)),
    ),
  )
  const { rows } = await newDatabase.owner.query('SELECT kid FROM signing_key')
  expect(rows).toHaveLength(1)
  const { token } = await (opened[0] as Tokens).issueToken(grant)
  for (const each of opened) expect(await each.verifyToken(token)).toMatchObject({ merchantId: 12 })
  await newDatabase.drop()
})

test('a process that sees no key, and is overtaken before it makes one, takes the other key', async () => {
  const newDatabase = await createTestDatabase()
  const { pool } = newDatabase.database
  let statements = 0
  const query = async (text: string, values: unknown[]) => {
    statements += 1
    if (statements === 2) await openSigningKeys(pool, master)
    return pool.query(text, values)
  }
  const overtaken = await openSigningKeys(Object.create(pool, { query: { value: query } }), master)
  expect(overtaken.current.kid).toBe('k1')
  expect((await newDatabase.owner.query('SELECT FROM signing_key')).rowCount).toBe(1)
  await newDatabase.drop()
})

test('the private key is encrypted: its row alone is useless, and no other row opens it', async () => {
  const { rows } = await db.owner.query('SELECT * FROM signing_key')
  const secret = ourKey.export({ format: 'jwk' }).d ?? ''
  expect(Buffer.from(rows[0].encrypted_private).includes(Buffer.from(secret, 'base64url'))).toBe(false)
  expect(JSON.stringify(rows[0].public_key)).not.toContain('"d"')
  expect(() => decrypt(master.encryptionKey, rows[0].encrypted_private, 'k2')).toThrow('authenticate')
})

test('another master secret is reported at the start, and changes nothing', async () => {
  const wrong = new MasterSecret(Buffer.alloc(32, 8))
  await expect(openSigningKeys(db.database.pool, wrong)).rejects.toThrow('The master secret does not open')
  const { rowCount } = await db.owner.query('SELECT FROM signing_key')
  expect(rowCount).toBe(1)
})

/** Moves the clock by which keys are read again, until the test ends. */
function secondLater(): void {
  const now = performance.now.bind(performance)
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 1_050)
  onTestFinished(() => clock.mockRestore())
}

test('a key that another process made is found; a retired one is valid for 720 hours', async () => {
  const newDatabase = await createTestDatabase()
  const { pool } = newDatabase.database
  const early = createTokens(await openSigningKeys(pool, master))
  const { token: old } = await early.issueToken(grant)
  await newDatabase.owner.query('UPDATE signing_key SET retired_at = now()')
  const lateKeys = await openSigningKeys(pool, master)
  expect(lateKeys.current.kid).toBe('k2')
  const late = createTokens(lateKeys)
  const { token } = await late.issueToken(grant)
  // Unknown key names cause at most one look at the table a second; the next look finds the new key.
  secondLater()
  await expect(early.verifyToken(await sign({}, { kid: 'k9' }))).rejects.toMatchObject(refused)
  expect(await early.verifyToken(token)).toMatchObject({ merchantId: 12 })
  expect(await late.verifyToken(old)).toMatchObject({ merchantId: 12 })
  await newDatabase.owner.query(
    `UPDATE signing_key SET retired_at = now() - interval '721 hours' WHERE kid = 'k1'`,
  )
  const last = createTokens(await openSigningKeys(pool, master))
  await expect(last.verifyToken(old)).rejects.toMatchObject(refused)
  await newDatabase.drop()
})

test('a hundred tokens with invented key names cost one look at the table', async () => {
  const queries: string[] = []
  const pool: typeof db.database.pool = Object.create(db.database.pool, {
    query: {
      value: (text: string, values: unknown[]) => {
        queries.push(text)
        return db.database.pool.query(text, values)
      },
    },
  })
  const watched = createTokens(await openSigningKeys(pool, master))
  const before = queries.length
  secondLater()
  const invented = await Promise.all(
    Array.from({ length: 100 }, (_, n) => sign({}, { kid: `invented-${n}` })),
  )
  const outcomes = await Promise.allSettled(invented.map((token) => watched.verifyToken(token)))
  expect(outcomes.every((outcome) => outcome.status === 'rejected')).toBe(true)
  await expect(watched.verifyToken(await sign({}, { kid: 'one-more' }))).rejects.toMatchObject(refused)
  expect(queries.length - before).toBe(1)
})

test('a key encrypted for another row does not sign', async () => {
  const newDatabase = await createTestDatabase()
  const der = ourKey.export({ format: 'der', type: 'pkcs8' })
  await newDatabase.owner.query(
    'INSERT INTO signing_key (kid, public_key, encrypted_private) VALUES ($1, $2, $3)',
    ['k1', publicJwk, encrypt(master.encryptionKey, der, 'k7')],
  )
  await expect(openSigningKeys(newDatabase.database.pool, master)).rejects.toThrow('k1')
  await newDatabase.drop()
})

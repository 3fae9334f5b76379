import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApiKey, regenerateApiKey, revokeApiKey } from '../../src/identity/keys/api-keys.ts'
import { borrow } from '../kit/client.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { makeMerchant, master } from '../kit/merchants.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db.drop())

const rowOf = async (apiKeyId: number) => {
  const { rows } = await db.owner.query('SELECT * FROM api_key WHERE id = $1', [apiKeyId])
  return rows[0]
}

test('a new key has version 1, its scopes once each, and no trace of the secret in its row', async () => {
  const { pool } = db.database
  const { merchantId } = await makeMerchant(pool)
  const made = await createApiKey(pool, master, {
    merchantId,
    name: 'Web',
    scopes: ['pay', 'balance', 'pay'],
  })
  const row = await rowOf(made.apiKeyId)
  expect(row).toMatchObject({
    merchant_id: merchantId,
    name: 'Web',
    key: made.key,
    version: 1,
    revoked_at: null,
  })
  expect(row.scopes).toEqual(['pay', 'balance'])
  expect(row.secret_hash).toHaveLength(32)
  const { rows } = await db.owner.query('SELECT k::text AS text FROM api_key k')
  expect(JSON.stringify(rows)).not.toContain(made.secret.reveal())
})

test('regenerating replaces both halves and raises the version', async () => {
  const { pool } = db.database
  const old = await makeMerchant(pool)
  const before = await rowOf(old.apiKeyId)
  const fresh = await regenerateApiKey(pool, master, old)
  const after = await rowOf(old.apiKeyId)
  expect(fresh.apiKeyId).toBe(old.apiKeyId)
  expect(fresh.key).not.toBe(old.key)
  expect(after).toMatchObject({ key: fresh.key, version: 2, scopes: before.scopes })
  expect(after.secret_hash.equals(before.secret_hash)).toBe(false)
})

test('regenerating a key in a transaction that is rolled back changes nothing', async () => {
  const old = await makeMerchant(db.database.pool)
  const client = await borrow(db.database.pool)
  await client.query('BEGIN')
  await regenerateApiKey(client, master, old)
  await client.query('ROLLBACK')
  client.release()
  expect(await rowOf(old.apiKeyId)).toMatchObject({ key: old.key, version: 1 })
})

test('another merchant, or an unknown one, gets NOT_FOUND and changes nothing', async () => {
  const { pool } = db.database
  const [shop, other] = [await makeMerchant(pool), await makeMerchant(pool)]
  const foreign = { merchantId: other.merchantId, apiKeyId: shop.apiKeyId }
  const refused = { code: 'NOT_FOUND' }
  await expect(regenerateApiKey(pool, master, foreign)).rejects.toMatchObject(refused)
  await expect(revokeApiKey(pool, foreign)).rejects.toMatchObject(refused)
  await expect(
    createApiKey(pool, master, { merchantId: 0, name: 'x', scopes: ['pay'] }),
  ).rejects.toMatchObject(refused)
  expect(await rowOf(shop.apiKeyId)).toMatchObject({ key: shop.key, version: 1, revoked_at: null })
})

test('a revoked key keeps its first revocation time, and is not regenerated', async () => {
  const { pool } = db.database
  const shop = await makeMerchant(pool)
  await revokeApiKey(pool, shop)
  const { revoked_at: first } = await rowOf(shop.apiKeyId)
  await revokeApiKey(pool, shop)
  expect((await rowOf(shop.apiKeyId)).revoked_at).toEqual(first)
  await expect(regenerateApiKey(pool, master, shop)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

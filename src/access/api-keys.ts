import type pg from 'pg'
import { DomainError } from '../shared/errors.ts'
import type { Secret } from '../shared/secret.ts'
import type { Scope } from './scopes.ts'
import { currentPepperId, hashSecret, type MasterSecret, makeApiKey, makeApiSecret } from './secrets.ts'

/** Both halves of a key, at the only moment when the secret one is known. */
export interface IssuedKey {
  apiKeyId: number
  key: string
  secret: Secret
}

/** A pool, or the client of an open transaction. */
export type Queryable = pg.Pool | pg.PoolClient

/**
 * Gives a merchant a new API key. Of the secret only a keyed hash is written.
 * @throws DomainError NOT_FOUND where there is no such merchant
 */
export async function createApiKey(
  client: Queryable,
  master: MasterSecret,
  input: { merchantId: number; name: string; scopes: readonly Scope[] },
): Promise<IssuedKey> {
  const pair = makePair(master)
  const { rows } = await client.query<{ id: number }>(
    `INSERT INTO api_key (merchant_id, name, scopes, key, secret_hash, pepper_id)
     SELECT id, $2, $3, $4, $5, $6 FROM merchant WHERE id = $1
     RETURNING id`,
    [input.merchantId, input.name, [...new Set(input.scopes)], pair.key, pair.secretHash, currentPepperId],
  )
  return issued(rows, pair)
}

/**
 * Replaces both halves of a key. The old pair, and with it every token made from it, is dead once this is
 * committed.
 * @throws DomainError NOT_FOUND where the merchant has no such key, or it was revoked
 */
export async function regenerateApiKey(
  client: Queryable,
  master: MasterSecret,
  input: { merchantId: number; apiKeyId: number },
): Promise<IssuedKey> {
  const pair = makePair(master)
  const { rows } = await client.query<{ id: number }>(
    `UPDATE api_key SET key = $3, secret_hash = $4, pepper_id = $5, version = version + 1
     WHERE id = $2 AND merchant_id = $1 AND revoked_at IS NULL
     RETURNING id`,
    [input.merchantId, input.apiKeyId, pair.key, pair.secretHash, currentPepperId],
  )
  return issued(rows, pair)
}

/**
 * Ends a key and its tokens for ever. Doing it again changes nothing.
 * @throws DomainError NOT_FOUND where the merchant has no such key
 */
export async function revokeApiKey(
  client: Queryable,
  input: { merchantId: number; apiKeyId: number },
): Promise<void> {
  const { rowCount } = await client.query(
    'UPDATE api_key SET revoked_at = coalesce(revoked_at, now()) WHERE id = $2 AND merchant_id = $1',
    [input.merchantId, input.apiKeyId],
  )
  if (rowCount === 0) throw new DomainError('NOT_FOUND')
}

interface Pair {
  key: string
  secret: Secret
  secretHash: Buffer
}

function makePair(master: MasterSecret): Pair {
  const secret = makeApiSecret()
  return {
    key: makeApiKey(),
    secret,
    secretHash: hashSecret(secret.reveal(), master.pepper(currentPepperId)),
  }
}

function issued(rows: readonly { id: number }[], pair: Pair): IssuedKey {
  const row = rows[0]
  if (!row) throw new DomainError('NOT_FOUND')
  return { apiKeyId: row.id, key: pair.key, secret: pair.secret }
}

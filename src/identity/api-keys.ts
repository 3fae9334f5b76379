import type pg from 'pg'
import { DomainError } from '../shared/errors.ts'
import type { Secret } from '../shared/secret.ts'
import type { Caps } from './caps.ts'
import type { Scope } from './scopes.ts'
import { currentPepperId, hashSecret, type MasterSecret, type Pair, pairFor } from './secrets.ts'

/** Both halves of a key, at the only moment when the secret one is known. */
export interface IssuedKey {
  apiKeyId: number
  key: string
  secret: Secret
  /** False where the same request had made it before. */
  isNew: boolean
}

/** A pool, or the client of an open transaction. */
export type Queryable = pg.Pool | pg.PoolClient

/** The request for a key; `effectId` where it may be begun again, and then makes no second one. */
interface KeyWish {
  merchantId: number
  name: string
  scopes: readonly Scope[]
  expiresAt?: Date | null
  caps?: Caps | null
  /** The member who is shown the pair, if it is one. */
  issuedToId?: number | null
  effectId?: string | null
}

/**
 * Gives a merchant a new API key. Of the secret only a keyed hash is written.
 * @throws DomainError NOT_FOUND where there is no such merchant
 */
export async function createApiKey(
  client: Queryable,
  master: MasterSecret,
  input: KeyWish,
): Promise<IssuedKey> {
  const {
    merchantId,
    name,
    scopes,
    expiresAt = null,
    caps = null,
    issuedToId = null,
    effectId = null,
  } = input
  const pair = pairFor(master, effectId)
  const { rows } = await client.query<{ id: number; isNew: boolean }>(
    `WITH made AS (
       INSERT INTO api_key (merchant_id, name, scopes, key, secret_hash, pepper_id, expires_at,
         max_per_payment, max_per_day, payment_methods, addresses, issued_to_id)
       SELECT id, $2, $3, $4, $5, $6, $7, $8, $9, $10::provider[], $11, $12 FROM merchant WHERE id = $1
       ON CONFLICT (key) DO NOTHING RETURNING id)
     SELECT id, true AS "isNew" FROM made
     UNION ALL SELECT id, false FROM api_key WHERE key = $4 AND merchant_id = $1`,
    [
      merchantId,
      name,
      [...new Set(scopes)],
      pair.key,
      hashOf(pair, master),
      currentPepperId,
      expiresAt,
      caps?.maxPerPayment ?? null,
      caps?.maxPerDay ?? null,
      caps?.paymentMethods ?? [],
      caps?.addresses ?? [],
      issuedToId,
    ],
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
  input: Pick<KeyWish, 'merchantId' | 'issuedToId' | 'effectId'> & { apiKeyId: number },
): Promise<IssuedKey> {
  const { merchantId, apiKeyId, issuedToId = null, effectId = null } = input
  const pair = pairFor(master, effectId)
  const { rows } = await client.query<{ id: number; isNew: boolean }>(
    `WITH made AS (
       UPDATE api_key SET key = $3, secret_hash = $4, pepper_id = $5, version = version + 1,
         issued_to_id = $6, suspended_at = NULL
       WHERE id = $2 AND merchant_id = $1 AND revoked_at IS NULL AND key <> $3
       RETURNING id)
     SELECT id, true AS "isNew" FROM made
     UNION ALL SELECT id, false FROM api_key
       WHERE id = $2 AND merchant_id = $1 AND revoked_at IS NULL AND key = $3`,
    [merchantId, apiKeyId, pair.key, hashOf(pair, master), currentPepperId, issuedToId],
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
    `UPDATE api_key SET revoked_at = coalesce(revoked_at, now())
     WHERE id = $2 AND merchant_id = $1`,
    [input.merchantId, input.apiKeyId],
  )
  if (rowCount === 0) throw new DomainError('NOT_FOUND')
}

function hashOf({ secret }: Pair, master: MasterSecret): Buffer {
  return hashSecret(secret.reveal(), master.pepper(currentPepperId))
}

function issued(rows: readonly { id: number; isNew: boolean }[], pair: Pair): IssuedKey {
  const row = rows[0]
  if (!row) throw new DomainError('NOT_FOUND')
  return { ...pair, apiKeyId: row.id, isNew: row.isNew }
}

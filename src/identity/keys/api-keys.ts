import { type SqlConnection, sqlFunction } from '../../database/sql-function.ts'
import { DomainError } from '../../shared/errors.ts'
import type { Secret } from '../../shared/secret.ts'
import type { KeyLimitSet } from './key-limits.ts'
import type { Scope } from '../callers/scopes.ts'
import { currentPepperId, hashSecret, type MasterSecret, type Pair, pairFor } from '../secrets/secrets.ts'

/** Both halves of a new key. The secret half cannot be read again later. */
export interface IssuedKey {
  apiKeyId: number
  key: string
  secret: Secret
  /** False where an earlier try of the same request had created the key. */
  isNew: boolean
}

const insertKey = sqlFunction('create_api_key', {
  takes: {
    merchant: 'int',
    label: 'text',
    granted: 'text[]',
    publicHalf: 'text',
    hash: 'bytea',
    pepper: 'int',
    until: 'timestamptz?',
    paymentMax: 'bigint?',
    dayMax: 'bigint?',
    methods: 'provider[]',
    networks: 'text[]',
    issuedTo: 'int?',
  },
  gives: { id: 'int', isNew: 'boolean' },
})

const replaceKey = sqlFunction('regenerate_api_key', {
  takes: {
    merchant: 'int',
    apiKeyId: 'int',
    publicHalf: 'text',
    hash: 'bytea',
    pepper: 'int',
    issuedTo: 'int?',
  },
  gives: { id: 'int', isNew: 'boolean' },
})

const endKey = sqlFunction('revoke_api_key', {
  takes: { merchant: 'int', apiKeyId: 'int' },
  gives: 'boolean?',
})

/** The options of a new key. With an `operationId` a repetition creates no second key. */
interface KeyOptions {
  merchantId: number
  name: string
  scopes: readonly Scope[]
  expiresAt?: Date | null
  keyLimits?: KeyLimitSet | null
  /** The member who is shown the pair; null where it is not shown to a member. */
  issuedToId?: number | null
  operationId?: string | null
}

/**
 * Creates an API key for a merchant. The database keeps only a keyed hash of the secret.
 * @throws DomainError NOT_FOUND where there is no such merchant
 */
export async function createApiKey(
  client: SqlConnection,
  master: MasterSecret,
  input: KeyOptions,
): Promise<IssuedKey> {
  const {
    merchantId,
    name,
    scopes,
    expiresAt = null,
    keyLimits = null,
    issuedToId = null,
    operationId = null,
  } = input
  const pair = pairFor(master, operationId)
  const rows = await insertKey(client, {
    merchant: merchantId,
    label: name,
    granted: [...new Set(scopes)],
    publicHalf: pair.key,
    hash: hashOf(pair, master),
    pepper: currentPepperId,
    until: expiresAt,
    paymentMax: keyLimits?.maxPerPayment ?? null,
    dayMax: keyLimits?.maxPerDay ?? null,
    methods: keyLimits?.paymentMethods ?? [],
    networks: keyLimits?.addresses ?? [],
    issuedTo: issuedToId,
  })
  return issued(rows, pair)
}

/**
 * Replaces both halves of a key. The old pair ends when the transaction commits; every token made from it
 * ends within a second after that.
 * @throws DomainError NOT_FOUND where the merchant has no such key, or it was revoked
 */
export async function regenerateApiKey(
  client: SqlConnection,
  master: MasterSecret,
  input: Pick<KeyOptions, 'merchantId' | 'issuedToId' | 'operationId'> & { apiKeyId: number },
): Promise<IssuedKey> {
  const { merchantId, apiKeyId, issuedToId = null, operationId = null } = input
  const pair = pairFor(master, operationId)
  const rows = await replaceKey(client, {
    merchant: merchantId,
    apiKeyId,
    publicHalf: pair.key,
    hash: hashOf(pair, master),
    pepper: currentPepperId,
    issuedTo: issuedToId,
  })
  return issued(rows, pair)
}

/**
 * Revokes a key and its tokens for ever. A repetition changes nothing.
 * @throws DomainError NOT_FOUND where the merchant has no such key
 */
export async function revokeApiKey(
  client: SqlConnection,
  input: { merchantId: number; apiKeyId: number },
): Promise<void> {
  const isKnown = await endKey(client, { merchant: input.merchantId, apiKeyId: input.apiKeyId })
  if (!isKnown) throw new DomainError('NOT_FOUND')
}

function hashOf({ secret }: Pair, master: MasterSecret): Buffer {
  return hashSecret(secret.reveal(), master.pepper(currentPepperId))
}

function issued(rows: readonly { id: number; isNew: boolean }[], pair: Pair): IssuedKey {
  const row = rows[0]
  if (!row) throw new DomainError('NOT_FOUND')
  return { ...pair, apiKeyId: row.id, isNew: row.isNew }
}

import { type SqlConnection, sqlFunction } from '../database/sql-function.ts'
import { DomainError } from '../shared/errors.ts'
import type { Secret } from '../shared/secret.ts'
import type { KeyLimitSet } from './key-limits.ts'
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

/** The request for a key; `operationId` where it may be begun again, and then makes no second one. */
interface KeyOptions {
  merchantId: number
  name: string
  scopes: readonly Scope[]
  expiresAt?: Date | null
  keyLimits?: KeyLimitSet | null
  /** The member who is shown the pair, if it is one. */
  issuedToId?: number | null
  operationId?: string | null
}

/**
 * Gives a merchant a new API key. Of the secret only a keyed hash is written.
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
 * Replaces both halves of a key. The old pair, and with it every token made from it, is dead once this is
 * committed.
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
 * Ends a key and its tokens for ever. Doing it again changes nothing.
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

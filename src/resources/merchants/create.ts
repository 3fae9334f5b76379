import { sqlFunction } from '../../database/sql-function.ts'
import type { PoolClient } from 'pg'
import { z } from 'zod'
import { createApiKey } from '../../identity/keys/api-keys.ts'
import { type Channel, platformRecording, recordMade } from '../../audit/audit-log.ts'
import { scopes } from '../../identity/callers/scopes.ts'
import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { fund } from '../../ledger/post.ts'
import { readInput, text } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import type { Xof } from '../../shared/money.ts'
import type { Secret } from '../../shared/secret.ts'
import { locks } from '../../database/locks.ts'

/** The reason why these functions bypass row-level security. */
const reason = 'an administrator creates merchants'

export const merchantInput = z.object({ name: text({ min: 1, max: limits.merchantNameLengthMax }) })

export interface NewMerchant {
  merchantId: number
  apiKey: string
  /** Shown once: only its keyed hash is stored. */
  apiSecret: Secret
}

/**
 * Opens a merchant account with an empty balance and one API key that holds every scope.
 * @throws DomainError INVALID_INPUT
 */
export async function createMerchant(
  services: Pick<Services, 'database' | 'access'>,
  raw: z.input<typeof merchantInput>,
): Promise<NewMerchant> {
  const { name } = readInput(merchantInput, raw)
  return transact(asPlatform(services, reason), (tx) => insertMerchant(tx, services, name, 'terminal'))
}

/**
 * Opens and funds the first merchant of a sandbox if the sandbox has no merchant. When several processes
 * start at once, only one of them opens it.
 * @returns null where a merchant exists already
 */
export async function createFirstMerchant(
  services: Pick<Services, 'database' | 'access'>,
  name: string,
  funds: Xof,
): Promise<NewMerchant | null> {
  return transact(asPlatform(services, reason), async (tx) => {
    await tx.query('SELECT pg_advisory_xact_lock($1)', [locks.firstMerchant])
    const { rows } = await tx.query('SELECT FROM merchant LIMIT 1')
    if (rows.length > 0) return null
    const made = await insertMerchant(tx, services, name, 'service')
    await fund(tx, { merchant: made.merchantId, origin: `funding:first:${made.merchantId}`, amount: funds })
    return made
  })
}

async function insertMerchant(
  tx: PoolClient,
  { access }: Pick<Services, 'access'>,
  name: string,
  channel: Channel,
): Promise<NewMerchant> {
  const merchantId = await insert(tx, { name })
  const { key, secret } = await createApiKey(tx, access.master, { merchantId, name: 'default', scopes })
  await recordMade(tx, platformRecording(merchantId, 'merchant create', channel), ['merchant', merchantId])
  return { merchantId, apiKey: key, apiSecret: secret }
}

const insert = sqlFunction('create_merchant', { takes: { name: 'text' }, gives: 'int' })

import type pg from 'pg'
import { createApiKey, type IssuedKey } from '../../src/identity/keys/api-keys.ts'
import {
  type Access,
  type AuthenticateInput,
  type ExchangeResult,
  exchangeCredentials,
  openAccess,
} from '../../src/identity/callers/authenticate.ts'
import { type Scope, scopes as allScopes } from '../../src/identity/callers/scopes.ts'
import { MasterSecret } from '../../src/identity/secrets/secrets.ts'
import { createLog } from '../../src/telemetry/log.ts'

export const master = new MasterSecret(Buffer.alloc(32, 7))

export function openTestAccess(pool: pg.Pool, trustedProxies: readonly string[] = []): Promise<Access> {
  return openAccess({ pool, master, trustedProxies, log: createLog('silent') })
}

export interface SignedInMerchant extends IssuedKey {
  merchantId: number
}

export async function makeMerchant(
  pool: pg.Pool,
  more: { whitelist?: string[]; scopes?: readonly Scope[] } = {},
): Promise<SignedInMerchant> {
  const { rows } = await pool.query<{ id: number }>(
    `INSERT INTO merchant (name, ip_whitelist) VALUES ('Shop', $1) RETURNING id`,
    [more.whitelist ?? []],
  )
  const merchantId = rows[0]?.id ?? 0
  const scopes = more.scopes ?? allScopes
  return { merchantId, ...(await createApiKey(pool, master, { merchantId, name: 'Till', scopes })) }
}

export async function deactivate(pool: pg.Pool | pg.PoolClient, merchantId: number): Promise<void> {
  await pool.query(`UPDATE merchant SET status = 'inactive', deactivated_at = now() WHERE id = $1`, [
    merchantId,
  ])
}

export function signIn(
  access: Access,
  { key, secret }: IssuedKey,
  more: { scopes?: unknown; expiresInHours?: unknown; clientAddress?: string | null } = {},
): Promise<ExchangeResult> {
  const { clientAddress = '192.0.2.1', ...options } = more
  const input = { apiKey: key, apiSecret: secret.reveal(), ...options } as AuthenticateInput
  return exchangeCredentials(access, input, clientAddress)
}

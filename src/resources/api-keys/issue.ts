import type { PoolClient } from 'pg'
import { actorOf } from '../../identity/callers/actor.ts'
import { whyTurnedAway } from '../../identity/callers/credentials.ts'
import { lackingScopes } from '../../identity/callers/scopes.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { locks } from '../../database/locks.ts'

/** The caller that creates or changes an API key, as the database knows it at this moment. */
export interface Issuer {
  /** The expiry of the calling API key: a key that it issues expires no later. Null: person, or no expiry. */
  expiresAt: Date | null
  /** The member who signed in, or the member that received the calling key; null where unknown. */
  memberId: number | null
}

/**
 * Runs `work` in a transaction that holds the lock on the access to the account, after checking that the
 * caller's credential is still valid: a caller whose key was revoked cannot issue a key that stays valid.
 * @throws DomainError RATE_LIMITED, UNAUTHENTICATED, ACCOUNT_INACTIVE, and every error of `work`
 */
export async function asIssuer<Result>(
  ctx: Context,
  work: (tx: PoolClient, issuer: Issuer) => Promise<Result>,
): Promise<Result> {
  const { merchantId, apiKeyId, apiKeyVersion } = actorOf(ctx)
  await ctx.requestLimits.takeAccessChange(ctx)
  const done = await transact(
    asPlatform(ctx, 'changes API keys of the merchant that the token names'),
    async (tx) => {
      // The transactions that end access take the same lock (see `end_access`): each of them runs either
      // before this one or after it.
      await tx.query('SELECT pg_advisory_xact_lock($1, $2)', [locks.access, merchantId])
      const { rows } = await tx.query<Issuer>(issuerSql, [apiKeyId, merchantId, apiKeyVersion])
      return rows[0] ? { result: await work(tx, rows[0]) } : null
    },
  )
  if (!done) throw await whyTurnedAway(ctx)
  return done.result
}

const issuerSql = `
  SELECT CASE WHEN k.member_id IS NULL THEN k.expires_at END AS "expiresAt",
    coalesce(k.member_id, k.issued_to_id) AS "memberId"
  FROM credential k JOIN merchant m ON m.id = k.merchant_id
  WHERE k.id = $1 AND k.merchant_id = $2 AND k.version = $3 AND k.revoked_at IS NULL
    AND coalesce(k.expires_at > now(), true) AND m.status = 'active'`

/**
 * Refuses scopes that the caller does not hold. Also refuses every caller with limits, because two keys with
 * the same limits would allow twice as much as one.
 * @throws DomainError FORBIDDEN
 */
export function checkGrants(ctx: Context, scopes: readonly string[]): void {
  const { keyLimits, scopes: granted } = actorOf(ctx)
  if (keyLimits)
    throw new DomainError('FORBIDDEN', 'A limited key or token cannot create or regenerate API keys.')
  const lacking = lackingScopes(granted, scopes)
  if (lacking.length === 0) return
  const message = `A key can only get scopes that you hold. You do not hold: ${lacking.join(', ')}.`
  throw new DomainError('FORBIDDEN', message, { requiredScopes: lacking })
}

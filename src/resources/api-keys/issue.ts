import type { PoolClient } from 'pg'
import { actorOf } from '../../identity/actor.ts'
import { whyTurnedAway } from '../../identity/credentials.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { locks } from '../../database/locks.ts'

/** Who makes or changes a key, as it stands at this moment. */
export interface Issuer {
  /** Of an API key that expires: what it makes ends no later. Of a person always null. */
  expiresAt: Date | null
  /** The person: who signed in, or whom the calling key was issued to. */
  memberId: number | null
}

/**
 * Runs `work` in a transaction that begins once nobody else changes the access to the account, and in which
 * the caller still has it: whose key was taken away makes none that lives on.
 * @throws DomainError RATE_LIMITED, UNAUTHENTICATED, ACCOUNT_INACTIVE, and whatever `work` throws
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
      // The lock of those who end access (see `end_access`): their statement before ours, or after it.
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
 * A key grants nothing that its maker does not hold. Who is limited makes none: two of them would allow twice
 * as much as one.
 * @throws DomainError FORBIDDEN
 */
export function checkGrants(ctx: Context, scopes: readonly string[]): void {
  const { keyLimits, scopes: granted } = actorOf(ctx)
  if (keyLimits) throw new DomainError('FORBIDDEN', 'A limited key or token cannot create or renew API keys.')
  const scopesHeld: ReadonlySet<string> = granted
  const lacking = scopes.filter((scope) => !scopesHeld.has(scope))
  if (lacking.length === 0) return
  const message = `You do not hold these scopes of the key: ${lacking.join(', ')}.`
  throw new DomainError('FORBIDDEN', message, { requiredScopes: lacking })
}

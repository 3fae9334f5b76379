import type pg from 'pg'
import { type Actor, actorOf } from '../../identity/callers/actor.ts'
import { whyTurnedAway } from '../../identity/callers/credentials.ts'
import { lackingScopes } from '../../identity/callers/scopes.ts'
import { type Role, roles } from '../../identity/members/roles.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { locks } from '../../database/locks.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { invariant } from '../../shared/invariant.ts'

/** The data of a merchant that its team needs. */
export interface TeamMerchant {
  name: string
  locale: 'fr' | 'en'
  /** Whether the account has an owner, or an invited one. */
  hasOwner: boolean
}

/**
 * Locks a merchant's team until the end of the transaction, so that the second of two changes sees the first.
 * @throws DomainError NOT_FOUND where there is no such merchant
 */
export async function lockTeam(tx: pg.PoolClient, merchantId: number): Promise<TeamMerchant> {
  const locked = await tx.query<Pick<TeamMerchant, 'name' | 'locale'>>(
    'SELECT name, locale FROM merchant WHERE id = $1 FOR NO KEY UPDATE',
    [merchantId],
  )
  const [shop] = locked.rows
  if (!shop) throw new DomainError('NOT_FOUND', `There is no merchant ${merchantId}.`)
  const { rows } = await tx.query<{ has: boolean }>(
    `SELECT EXISTS (SELECT FROM team_member
       WHERE merchant_id = $1 AND role = 'owner' AND status <> 'removed') AS has`,
    [merchantId],
  )
  invariant(rows[0], 'the query returns one row')
  return { ...shop, hasOwner: rows[0].has }
}

/**
 * Runs a change of the caller's team while the team is locked. A caller whose credential has ended since the
 * request began (a member who was removed or got another role, a revoked key) changes nothing.
 * @throws DomainError UNAUTHENTICATED, ACCOUNT_INACTIVE, and every error of `work`
 */
export async function changeTeam<Result>(
  ctx: Context,
  reason: string,
  work: (tx: pg.PoolClient, shop: TeamMerchant) => Promise<Result>,
): Promise<Result> {
  const { merchantId, apiKeyId, apiKeyVersion } = actorOf(ctx)
  const done = await transact(asPlatform(ctx, reason), async (tx) => {
    const shop = await lockTeam(tx, merchantId)
    // A transaction that ends access takes this lock alone (see `end_access`): it runs before or after.
    await tx.query('SELECT pg_advisory_xact_lock_shared($1, $2)', [locks.access, merchantId])
    const { rowCount } = await tx.query(validCallerSql, [apiKeyId, merchantId, apiKeyVersion])
    return rowCount === 1 ? { result: await work(tx, shop) } : null
  })
  if (!done) throw await whyTurnedAway(ctx)
  return done.result
}

const validCallerSql = `
  SELECT FROM credential k JOIN merchant m ON m.id = k.merchant_id
  WHERE k.id = $1 AND k.merchant_id = $2 AND k.version = $3 AND k.revoked_at IS NULL
    AND coalesce(k.expires_at > now(), true) AND m.status = 'active'`

/**
 * Refuses a caller who may not give a role, take it away, or remove a member who has it: no caller gives a
 * scope that the caller lacks. An API key counts as an admin whose scopes are those of its token, and may
 * also name the first owner of an account that has none. An API key with limits manages viewers only.
 *
 * Choice: every token with the scope `team` may give a role that only reads (viewer). The specification asks
 * only for `team` to invite a member, and viewer is the default role. The holder of such a token can read the
 * account by an invitation to itself, but can change nothing and move no money; a `security_alert`
 * (`member_joined`) tells the merchant. A role that may change something needs all of its scopes, also to be
 * taken away: else a key could remove every admin who would notice its use.
 * @throws DomainError FORBIDDEN, with the scopes of the role that the token lacks
 */
export function checkManages(actor: Actor, concerned: readonly Role[], hasOwner: boolean): void {
  if (actor.keyLimits && concerned.some((role) => role !== 'viewer')) {
    throw new DomainError('FORBIDDEN', 'A limited key or token can manage viewers only.')
  }
  const manages: readonly Role[] = roles[actor.role ?? 'admin'].manages
  const isFirst = actor.role === null && !hasOwner
  const beyond = concerned.find((role) => !manages.includes(role) && !(role === 'owner' && isFirst))
  if (beyond !== undefined) {
    const who = actor.role === null ? 'An API key' : `The role ${actor.role}`
    throw new DomainError('FORBIDDEN', `${who} cannot manage members with the role ${beyond}.`)
  }
  for (const role of concerned) checkHolds(actor, role)
}

/** Refuses a caller who lacks a scope of a role, unless the role only reads. @throws DomainError FORBIDDEN */
function checkHolds(actor: Actor, role: Role): void {
  if (roles[role].readsOnly) return
  const lacking = lackingScopes(actor.scopes, roles[role].scopes)
  if (lacking.length === 0) return
  const message =
    `Only a token that holds every scope of the role ${role} can give the role or manage members who have ` +
    `it. The token lacks: ${lacking.join(', ')}.`
  throw new DomainError('FORBIDDEN', message, { requiredScopes: lacking })
}

/** A member of the team, while the team is locked. */
export interface LockedMember {
  id: number
  name: string
  email: string
  role: Role
  status: 'invited' | 'active'
  /** True if no other active member is an owner. */
  isLastOwner: boolean
}

/** Reads a member. @throws DomainError NOT_FOUND where the merchant has no such member, or it was removed */
export async function readMember(
  tx: pg.PoolClient,
  merchantId: number,
  memberId: number,
): Promise<LockedMember> {
  const { rows } = await tx.query<LockedMember>(
    `SELECT id, name, email, role, status, role = 'owner' AND status = 'active' AND NOT EXISTS (
       SELECT FROM team_member o WHERE o.merchant_id = m.merchant_id AND o.role = 'owner'
         AND o.status = 'active' AND o.id <> m.id) AS "isLastOwner"
     FROM team_member m WHERE m.id = $2 AND m.merchant_id = $1 AND m.status <> 'removed'`,
    [merchantId, memberId],
  )
  const [member] = rows
  if (!member) throw new DomainError('NOT_FOUND', 'There is no such member.')
  return member
}

import type pg from 'pg'
import { actorOf, mine } from '../../identity/callers/actor.ts'
import { recordChange, recordedChange, recordingOf } from '../../audit/audit-log.ts'
import type { Role } from '../../identity/members/roles.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import { ownAccount } from './own-account.ts'
import { checkManages } from './team-lookup.ts'
import { sqlFunction } from '../../database/sql-function.ts'

/** The reason to write without row-level security. */
const reason = 'ends sessions of the merchant that the token names'

const closeSession = sqlFunction('end_session', {
  takes: { merchant: 'int', sessionId: 'int' },
  gives: 'void',
})

const closeSessions = sqlFunction('end_sessions', {
  takes: { member: 'int', kept: 'int?' },
  gives: 'void',
})

/** A session that has not ended, as lists show it. */
export interface LiveSession {
  id: number
  memberId: number
  createdAt: Date
  expiresAt: Date
  lastUsedAt: Date | null
  lastUsedFrom: string | null
}

/**
 * Lists the open sessions of a member: of the caller, or of a member that the caller manages.
 * @param givenId id of the member; null: the caller
 * @throws DomainError FORBIDDEN, NOT_FOUND
 */
export async function listSessions(ctx: Context, givenId: number | null): Promise<LiveSession[]> {
  const memberId = givenId ?? ownAccount(ctx).memberId
  const { merchantPool } = ctx.database
  if (memberId !== actorOf(ctx).memberId) await checkMaySee(ctx, merchantPool, memberId)
  const { rows } = await merchantPool.query<LiveSession>(
    `SELECT id, member_id AS "memberId", created_at AS "createdAt", expires_at AS "expiresAt",
       last_used_at AS "lastUsedAt", last_used_from AS "lastUsedFrom"
     FROM session WHERE member_id = $2 AND merchant_id = $1 AND revoked_at IS NULL
       AND expires_at > now() AND coalesce(last_used_at, created_at) > now() - $3 * interval '1 millisecond'
     ORDER BY id DESC LIMIT $4`,
    [mine(ctx).merchantId, memberId, limits.sessionIdleMs, limits.sessionsPerMemberMax],
  )
  return rows
}

/**
 * Ends a session of the caller, or of a member that the caller manages. A repetition changes nothing.
 * @throws DomainError NOT_FOUND, FORBIDDEN
 */
export async function revokeSession(ctx: Context, id: number): Promise<void> {
  const actor = actorOf(ctx)
  const { pool } = asPlatform(ctx, reason)
  const { rows } = await pool.query<{ memberId: number }>(
    `SELECT member_id AS "memberId" FROM session WHERE id = $2 AND merchant_id = $1`,
    [actor.merchantId, id],
  )
  const [session] = rows
  if (!session) throw new DomainError('NOT_FOUND', 'There is no such session.')
  if (session.memberId !== actor.memberId) await checkMaySee(ctx, pool, session.memberId)
  await endSession(ctx, 'revokeSession', id)
}

/** Ends a session of the caller's merchant. */
async function endSession(ctx: Context, operation: string, id: number): Promise<void> {
  await transact(asPlatform(ctx, reason), (tx) =>
    recordedChange(tx, recordingOf(ctx, operation), ['session', id], () =>
      closeSession(tx, { merchant: mine(ctx).merchantId, sessionId: id }),
    ),
  )
}

/** Refuses a caller who does not manage the member. @throws DomainError NOT_FOUND, FORBIDDEN */
async function checkMaySee(ctx: Context, pool: pg.Pool, memberId: number): Promise<void> {
  const actor = actorOf(ctx)
  if (!actor.scopes.has('team'))
    throw new DomainError('FORBIDDEN', 'These sessions belong to another member.')
  const { rows } = await pool.query<{ role: Role }>(
    'SELECT role FROM team_member WHERE id = $2 AND merchant_id = $1',
    [actor.merchantId, memberId],
  )
  const [member] = rows
  if (!member) throw new DomainError('NOT_FOUND', 'There is no such member.')
  checkManages(actor, [member.role], true)
}

/** Signs out: ends the session of this call. @throws DomainError FORBIDDEN where an API key calls */
export async function signOut(ctx: Context): Promise<void> {
  const { sessionId } = ownAccount(ctx)
  await endSession(ctx, 'signOut', sessionId)
  leave(ctx, sessionId)
}

/**
 * Ends every session of the caller, this one included, as after the loss of a telephone.
 * @throws DomainError FORBIDDEN where an API key calls
 */
export async function signOutEverywhere(ctx: Context): Promise<void> {
  const { memberId, sessionId } = ownAccount(ctx)
  await transact(asPlatform(ctx, reason), async (tx) => {
    await closeSessions(tx, { member: memberId, kept: null })
    await recordChange(tx, recordingOf(ctx, 'signOutEverywhere'), { target: ['member', memberId] })
  })
  leave(ctx, sessionId)
}

/** Makes the end of the caller's session known at once: to this process, and to the browser that kept it. */
function leave({ access, sessionCookie }: Context, sessionId: number): void {
  access.credentials.forget(sessionId)
  if (sessionCookie?.token) sessionCookie.write?.(null)
}

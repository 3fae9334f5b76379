import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import type { Access } from './authenticate.ts'
import { addressBlock } from '../shared/ip-whitelist.ts'
import { type Role, roles } from './roles.ts'
import { rememberAddress } from '../limits/sign-in-waits.ts'
import type { IssuedToken } from './tokens.ts'

/** A session of a person ends after so long (design: reliability, section 7). */
const sessionHours = 12

/** Whoever has proven to be a member. */
export interface ProvenMember {
  memberId: number
  merchantId: number
  role: Role
  email: string
}

/**
 * Signs a member in: the session as a row, the address as a known one, and the event that tells of it.
 * @returns the session's id
 */
export async function openSession(
  tx: pg.PoolClient,
  { memberId, merchantId, email }: ProvenMember,
  address: string | null,
): Promise<number> {
  const { rows } = await tx.query<{ id: number }>(
    `INSERT INTO api_key (merchant_id, kind, name, key, scopes, member_id, expires_at, last_used_at,
       last_used_from)
     VALUES ($1, 'session', 'session', $2, '{}', $3, now() + $4 * interval '1 hour', now(), $5) RETURNING id`,
    [merchantId, `session_${randomBytes(16).toString('hex')}`, memberId, sessionHours, address],
  )
  const id = rows[0]?.id
  invariant(id, 'a new session has an id')
  await tx.query(
    `UPDATE api_key SET revoked_at = now() WHERE id IN (
       SELECT id FROM api_key
       WHERE member_id = $1 AND kind = 'session' AND revoked_at IS NULL AND expires_at > now()
       ORDER BY id DESC OFFSET $2)`,
    [memberId, limits.sessionsPerMemberMax],
  )
  await rememberAddress(tx, email, address)
  const told = { team_member_id: memberId, email, ip: address }
  await tx.query(`SELECT note_access($1, 'team_login', $2)`, [merchantId, told])
  return id
}

/** Whether a member who was signed in before has never been so from this address, as far as is remembered. */
export async function isNewAddress(
  tx: pg.PoolClient,
  memberId: number,
  sessionId: number,
  address: string | null,
): Promise<boolean> {
  const { rows } = await tx.query<{ address: string | null }>(
    `SELECT DISTINCT last_used_from AS address FROM api_key
     WHERE member_id = $1 AND kind = 'session' AND id <> $2`,
    [memberId, sessionId],
  )
  const here = addressBlock(address)
  return rows.length > 0 && !rows.some((known) => addressBlock(known.address) === here)
}

/** The access token of a session that is committed. What it allows is looked up with each request. */
export function sessionToken(
  { tokens }: Pick<Access, 'tokens'>,
  { merchantId, role }: ProvenMember,
  sessionId: number,
): Promise<IssuedToken> {
  const { scopes } = roles[role]
  const hours = sessionHours
  return tokens.issueToken({ merchantId, apiKeyId: sessionId, apiKeyVersion: 1, scopes, hours })
}

/** Ends the sessions of a member, but for one. */
export async function endSessions(tx: pg.PoolClient, memberId: number, but: number | null): Promise<void> {
  await tx.query(
    `UPDATE api_key SET revoked_at = now()
     WHERE member_id = $1 AND id IS DISTINCT FROM $2 AND revoked_at IS NULL`,
    [memberId, but],
  )
}

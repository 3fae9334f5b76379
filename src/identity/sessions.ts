import type pg from 'pg'
import { sqlFunction } from '../database/sql-function.ts'
import { limits } from '../shared/limits.ts'
import type { Access } from './authenticate.ts'
import { addressBlock } from '../shared/ip-whitelist.ts'
import { type Role, roles } from './roles.ts'
import { rememberAddress } from '../limits/sign-in-waits.ts'
import type { IssuedToken } from './tokens.ts'

/** A session of a person ends after so long (see docs/design/rules.md#people). */
const sessionHours = 12

/** Whoever has proven to be a member. */
export interface VerifiedMember {
  memberId: number
  merchantId: number
  role: Role
  email: string
}

const insertSession = sqlFunction('open_session', {
  takes: { merchant: 'int', member: 'int', email: 'text', address: 'text?', hours: 'int', most: 'int' },
  gives: 'int',
})

/**
 * Signs a member in: the session, the address as a known one, and the event that tells of it.
 * @returns the session's id
 */
export async function openSession(
  tx: pg.PoolClient,
  { memberId, merchantId, email }: VerifiedMember,
  address: string | null,
): Promise<number> {
  const id = await insertSession(tx, {
    merchant: merchantId,
    member: memberId,
    email,
    address,
    hours: sessionHours,
    most: limits.sessionsPerMemberMax,
  })
  await rememberAddress(tx, email, address)
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
    `SELECT DISTINCT last_used_from AS address FROM session WHERE member_id = $1 AND id <> $2`,
    [memberId, sessionId],
  )
  const here = addressBlock(address)
  return rows.length > 0 && !rows.some((known) => addressBlock(known.address) === here)
}

/** The access token of a session that is committed. What it allows is looked up with each request. */
export function sessionToken(
  { tokens }: Pick<Access, 'tokens'>,
  { merchantId, role }: VerifiedMember,
  sessionId: number,
): Promise<IssuedToken> {
  const { scopes } = roles[role]
  const hours = sessionHours
  return tokens.issueToken({ merchantId, apiKeyId: sessionId, apiKeyVersion: 1, scopes, hours })
}

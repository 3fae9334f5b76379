import type pg from 'pg'
import { sqlFunction } from '../../database/sql-function.ts'
import { limits } from '../../shared/limits.ts'
import type { Access } from '../callers/authenticate.ts'
import { addressBlock } from '../../shared/ip-whitelist.ts'
import { type Role, roles } from './roles.ts'
import { rememberAddress } from '../../limits/sign-in-waits.ts'
import type { IssuedToken } from '../callers/tokens.ts'

/** The longest life of a person's session (see docs/design/rules.md#people). */
export const sessionHours = 12

/** A member whose credentials were verified. */
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
 * Signs a member in: creates the session, remembers its address, and emits the event of the sign-in.
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

/** True if the member has earlier sessions, and none of them was last used from this address. */
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

/** Issues the access token of a session after its commit. The rights are looked up at each request. */
export function sessionToken(
  { tokens }: Pick<Access, 'tokens'>,
  { merchantId, role }: VerifiedMember,
  sessionId: number,
): Promise<IssuedToken> {
  const { scopes } = roles[role]
  const hours = sessionHours
  return tokens.issueToken({ merchantId, apiKeyId: sessionId, apiKeyVersion: 1, scopes, hours })
}

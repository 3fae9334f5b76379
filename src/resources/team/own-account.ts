import { asPlatform } from '../../database/as-platform.ts'
import { actorOf } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'
import { readInput, text } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { type Candidate, candidateColumns, withVerifiedMember } from './verify-credentials.ts'

/** Of a password that is given, not chosen: any that could ever have been one. */
export const givenPassword = text({ min: 1, max: limits.passwordLengthMax })

/** The person who calls. @throws DomainError UNAUTHENTICATED; FORBIDDEN where an API key calls */
export function ownAccount(ctx: Context): { memberId: number; merchantId: number; sessionId: number } {
  const { memberId, merchantId, apiKeyId } = actorOf(ctx)
  if (memberId === null) throw new DomainError('FORBIDDEN', 'Only a signed-in member can use this operation.')
  return { memberId, merchantId, sessionId: apiKeyId }
}

/**
 * Does what takes the password again: whoever finds an open session must not keep the account.
 * @param given.code where a second factor has to be proven as well
 * @throws DomainError UNAUTHENTICATED, FORBIDDEN, INVALID_INPUT, RATE_LIMITED, CREDENTIALS_REJECTED,
 *   OVERLOADED, and whatever `then` throws
 */
export async function withOwnPassword<T>(
  ctx: Context,
  given: { password: string; code?: string },
  then: (member: Candidate) => Promise<T>,
): Promise<T> {
  const { memberId } = ownAccount(ctx)
  const { password, code } = given
  readInput(givenPassword, password)
  const find = async () => {
    const { rows } = await asPlatform(ctx, 'no merchant may read what proves a person').pool.query<Candidate>(
      `SELECT ${candidateColumns}
       FROM team_member t JOIN member_secret s ON s.member_id = t.id JOIN merchant m ON m.id = t.merchant_id
       WHERE t.id = $1 AND t.status = 'active'`,
      [memberId],
    )
    return rows[0] ?? null
  }
  const self = await find()
  if (!self) throw new DomainError('UNAUTHENTICATED')
  return withVerifiedMember(ctx, { email: self.email, find: async () => self, password, code }, then)
}

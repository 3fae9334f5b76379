import { z } from 'zod'
import { asPlatform } from '../../database/as-platform.ts'
import { actorOf } from '../../identity/callers/actor.ts'
import { unauthenticated } from '../../shared/challenge.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'
import { exactText, readInput } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { type Candidate, candidateColumns, withVerifiedMember } from './verify-credentials.ts'

/** The present password of a member: any text that could ever have been a password. */
export const givenPassword = exactText({ min: 1, max: limits.passwordLengthMax })

/** Returns the person who calls. @throws DomainError UNAUTHENTICATED; FORBIDDEN where an API key calls */
export function ownAccount(ctx: Context): { memberId: number; merchantId: number; sessionId: number } {
  const { memberId, merchantId, apiKeyId } = actorOf(ctx)
  if (memberId === null) throw new DomainError('FORBIDDEN', 'Only a signed-in member can use this operation.')
  return { memberId, merchantId, sessionId: apiKeyId }
}

/**
 * Runs an action that needs the password again, so that a stranger with an open session cannot take over the
 * account.
 * @param given.code the code of the second factor, where the action needs it too
 * @param given.field the name that the password has in the input; a refusal names it
 * @throws DomainError UNAUTHENTICATED, FORBIDDEN, INVALID_INPUT, RATE_LIMITED, CREDENTIALS_REJECTED,
 *   OVERLOADED, and every error of `then`
 */
export async function withOwnPassword<T>(
  ctx: Context,
  given: { password: string; code?: string; field?: 'password' | 'current' },
  then: (member: Candidate) => Promise<T>,
): Promise<T> {
  const { memberId } = ownAccount(ctx)
  const { password, code, field = 'password' } = given
  readInput(z.object({ [field]: givenPassword }), { [field]: password })
  const find = async () => {
    const { rows } = await asPlatform(
      ctx,
      'no merchant may read the secrets of a member',
    ).pool.query<Candidate>(
      `SELECT ${candidateColumns}
       FROM team_member t JOIN member_secret s ON s.member_id = t.id JOIN merchant m ON m.id = t.merchant_id
       WHERE t.id = $1 AND t.status = 'active'`,
      [memberId],
    )
    return rows[0] ?? null
  }
  const self = await find()
  if (!self) throw unauthenticated('revoked')
  return withVerifiedMember(ctx, { email: self.email, find: async () => self, password, code }, then)
}

import { z } from 'zod'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import { hashOfMemberToken } from '../../identity/members/member-tokens.ts'
import { openSession } from '../../identity/members/sessions.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { invalidInput, readInput } from '../../shared/input.ts'
import { memberName } from './invite.ts'
import { type Candidate, candidateColumns, checkAdmitted } from './verify-credentials.ts'
import { checkPassword, chosenPassword, memberTokenText } from './password.ts'
import { checkMayKeep, keptInCookie, type SignedIn, welcome } from './sign-in.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'

/** The reason to work without row-level security. */
const reason = 'no member is signed in yet: the invitation is the credential'

const join = sqlFunction('accept_invitation', {
  takes: { invitation: 'bytea', hashedPassword: 'text', member: 'int', called: 'text?' },
  gives: { name: 'text', role: sqlType<Candidate['role']>('member_role') },
})

export const acceptInput = z.object({
  token: memberTokenText,
  name: memberName.nullish(),
  password: chosenPassword,
  cookie: keptInCookie,
})

/**
 * Accepts an invitation, once, and signs in.
 * @param raw.token the token of the invitation e-mail
 * @param raw.name the corrected name, if the invitation had a wrong one
 * @throws DomainError INVALID_INPUT (also: the token is unknown, used or expired),
 *   ACCOUNT_INACTIVE, ADDRESS_NOT_ALLOWED, OVERLOADED
 */
export async function acceptInvitation(ctx: Context, raw: z.input<typeof acceptInput>): Promise<SignedIn> {
  const { token, name, password, cookie } = readInput(acceptInput, raw)
  if (cookie) checkMayKeep(ctx)
  const hash = hashOfMemberToken(ctx.access.master, token)
  const { rows } = await asPlatform(ctx, reason).pool.query<Candidate>(
    `SELECT ${candidateColumns}
     FROM member_secret s JOIN team_member t ON t.id = s.member_id JOIN merchant m ON m.id = t.merchant_id
     WHERE s.invitation_hash = $1 AND s.invitation_expires_at > now() AND t.status = 'invited'`,
    [hash],
  )
  const [invited] = rows
  if (!invited) throw unusable()
  checkAdmitted(ctx, invited)
  checkPassword(password, invited)
  const passwordHash = await ctx.access.passwords.hash(password)
  return transact(asPlatform(ctx, reason), async (tx) => {
    const recording = recordingOf(ctx, 'acceptInvitation', { ...invited, apiKeyId: 0 })
    const [row] = await recordedChange(tx, recording, ['member', invited.memberId], () =>
      join(tx, {
        invitation: hash,
        hashedPassword: passwordHash,
        member: invited.memberId,
        called: name ?? null,
      }),
    )
    if (!row) throw unusable()
    const member = { ...invited, ...row }
    return { member, sessionId: await openSession(tx, member, ctx.clientAddress) }
  }).then(({ member, sessionId }) => welcome(ctx, member, sessionId, cookie))
}

function unusable() {
  return invalidInput([{ field: 'token', message: 'is not a valid invitation, or was already used' }])
}

import { z } from 'zod'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import { hashOfProof } from '../../identity/proofs.ts'
import { openSession } from '../../identity/sessions.ts'
import type { Context } from '../../context.ts'
import { transact } from '../../database/transact.ts'
import { invalidInput, readInput } from '../../shared/input.ts'
import { memberName } from './invite.ts'
import { type Candidate, candidateColumns, checkAdmitted } from './judge.ts'
import { checkPassword, chosenPassword, proofText } from './password.ts'
import { type SignedIn, welcome } from './sign-in.ts'

const acceptInput = z.object({ token: proofText, name: memberName.nullish(), password: chosenPassword })

/**
 * Accepts an invitation, once, and signs in.
 * @param raw.token of the letter
 * @param raw.name where it was written wrongly
 * @throws DomainError INVALID_INPUT (also: the token is unknown, used, or older than 72 hours),
 *   ACCOUNT_INACTIVE, ADDRESS_NOT_ALLOWED, OVERLOADED
 */
export async function acceptInvitation(ctx: Context, raw: z.input<typeof acceptInput>): Promise<SignedIn> {
  const { token, name, password } = readInput(acceptInput, raw)
  const hash = hashOfProof(ctx.access.master, token)
  const { rows } = await ctx.database.pool.query<Candidate>(
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
  return transact(ctx.database, async (tx) => {
    // Of two who come with one invitation the second finds it used.
    const used = await tx.query(
      `UPDATE member_secret SET password_hash = $2, invitation_hash = NULL
       WHERE invitation_hash = $1 AND invitation_expires_at > now()`,
      [hash, passwordHash],
    )
    if (used.rowCount === 0) throw unusable()
    const recording = recordingOf(ctx, 'acceptInvitation', { ...invited, apiKeyId: 0 })
    const joined = await recordedChange(tx, recording, ['member', invited.memberId], () =>
      tx.query<{ name: string; role: Candidate['role'] }>(
        `UPDATE team_member SET status = 'active', joined_at = service_now(), name = coalesce($2, name)
         WHERE id = $1 AND status = 'invited' RETURNING name, role`,
        [invited.memberId, name ?? null],
      ),
    )
    const [row] = joined.rows
    if (!row) throw unusable()
    const member = { ...invited, ...row }
    return { member, sessionId: await openSession(tx, member, ctx.clientAddress) }
  }).then(({ member, sessionId }) => welcome(ctx, member, sessionId))
}

function unusable() {
  return invalidInput([{ field: 'token', message: 'is no invitation that can still be accepted' }])
}

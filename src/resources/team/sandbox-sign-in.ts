import { z } from 'zod'
import { platformRecording, recordingOf, recordMade } from '../../audit/audit-log.ts'
import { hashOfMemberToken, makeMemberToken } from '../../identity/members/member-tokens.ts'
import { openSession } from '../../identity/members/sessions.ts'
import { type Context, sandboxOf, type Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { sqlFunction } from '../../database/sql-function.ts'
import { transact } from '../../database/transact.ts'
import { invalidInput, readInput } from '../../shared/input.ts'
import { memberTokenText } from './password.ts'
import { checkMayKeep, keptInCookie, type SignedIn, welcome } from './sign-in.ts'
import { type Candidate, candidateColumns, checkAdmitted } from './verify-credentials.ts'

/** The reason to work without row-level security. */
const reason = 'no member is signed in yet: the link of the first screen is the credential'

/** The owner that a sandbox merchant without an owner gets. A password can be set by the reset letter. */
const sandboxOwner = { called: 'Awa Traoré', address: 'owner@sandbox.example' } as const

/** Time for which the link of the first screen works. Choice: a working day and the night after it. */
const linkLifetimeMs = 24 * 3_600_000

const offerLink = sqlFunction('offer_sign_in_link', {
  takes: { merchant: 'int', called: 'text', address: 'text', tokenHash: 'bytea', lifetimeMs: 'int' },
  gives: { owner: 'int', isNew: 'boolean' },
})
const consumeLink = sqlFunction('use_sign_in_link', { takes: { tokenHash: 'bytea' }, gives: 'boolean?' })

/**
 * Makes the token of the link that the first screen shows. An earlier link of the merchant stops working.
 * @param merchantId the merchant; default: the oldest one, which is the merchant of the first start
 * @returns null where there is no merchant, or its account is not active
 */
export async function offerSandboxSignIn(
  services: Pick<Services, 'database' | 'access'>,
  merchantId?: number,
): Promise<string | null> {
  const { token, hash } = makeMemberToken(services.access.master)
  return transact(asPlatform(services, 'the start names the merchant'), async (tx) => {
    const { rows } = await tx.query<{ id: number }>(
      'SELECT id FROM merchant WHERE coalesce(id = $1, true) ORDER BY id LIMIT 1',
      [merchantId ?? null],
    )
    if (!rows[0]) return null
    const { id: merchant } = rows[0]
    const link = { merchant, tokenHash: hash, lifetimeMs: linkLifetimeMs }
    const [offered] = await offerLink(tx, { ...link, ...sandboxOwner })
    if (!offered) return null
    const recording = platformRecording(merchant, 'sandbox owner', 'service')
    if (offered.isNew) await recordMade(tx, recording, ['member', offered.owner])
    return token
  })
}

export const sandboxSignInInput = z.object({ token: memberTokenText, cookie: keptInCookie })

/**
 * Signs the owner of a sandbox in with the link of the first screen, once. Choice: the link needs no code of
 * a second factor, because the person who started the sandbox also holds its database.
 * @throws DomainError NOT_FOUND (no sandbox), INVALID_INPUT (also: the token is unknown, used or too old),
 *   ACCOUNT_INACTIVE, ADDRESS_NOT_ALLOWED
 */
export async function signInToSandbox(
  ctx: Context,
  raw: z.input<typeof sandboxSignInInput>,
): Promise<SignedIn> {
  sandboxOf(ctx)
  const { token, cookie } = readInput(sandboxSignInInput, raw)
  if (cookie) checkMayKeep(ctx)
  const hash = hashOfMemberToken(ctx.access.master, token)
  const { rows } = await asPlatform(ctx, reason).pool.query<Candidate>(
    `SELECT ${candidateColumns}
     FROM member_secret s JOIN team_member t ON t.id = s.member_id JOIN merchant m ON m.id = t.merchant_id
     WHERE s.sign_in_hash = $1 AND s.sign_in_expires_at > now() AND t.status = 'active'`,
    [hash],
  )
  const [member] = rows
  if (!member) throw unusable()
  checkAdmitted(ctx, member)
  const sessionId = await transact(asPlatform(ctx, reason), async (tx) => {
    if (!(await consumeLink(tx, { tokenHash: hash }))) throw unusable()
    const id = await openSession(tx, member, ctx.clientAddress)
    await recordMade(tx, recordingOf(ctx, 'sandboxSignIn', { ...member, apiKeyId: id }), ['session', id])
    return id
  })
  return welcome(ctx, member, sessionId, cookie)
}

function unusable() {
  const message = 'is not a valid sign-in token, or was already used: start the sandbox again'
  return invalidInput([{ field: 'token', message }])
}

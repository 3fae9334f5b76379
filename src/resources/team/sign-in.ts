import type { Pool, PoolClient } from 'pg'
import { z } from 'zod'
import { recordingOf, recordMade } from '../../audit/audit-log.ts'
import { takeHit } from '../../limits/window.ts'
import {
  isNewAddress,
  openSession,
  type VerifiedMember,
  sessionToken,
} from '../../identity/members/sessions.ts'
import type { IssuedToken } from '../../identity/callers/tokens.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { exactText, invalidInput, readInput, wholeNumber, withDefault } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { memberEmail } from './invite.ts'
import { type Candidate, candidateColumns, checkAdmitted, withVerifiedMember } from './verify-credentials.ts'
import { writeEmail } from './emails.ts'
import { givenPassword } from './own-account.ts'

/** The reason to work without row-level security. */
const reason = 'no member is signed in yet: the e-mail address names the member'

/** The most e-mails about sign-ins from new addresses that one member gets in an hour (a choice). */
const newAddressEmailsMax = 3

/** Whether a browser keeps the session in a cookie. */
export const keptInCookie = withDefault(z.boolean(), false)

export const signInInput = z.object({
  email: memberEmail,
  password: givenPassword,
  code: exactText({ min: 1, max: 32 }).nullish(),
  merchantId: wholeNumber(1, 2_147_483_647).nullish(),
  cookie: keptInCookie,
})

/** A member who has signed in, with the token of the session. */
export interface SignedIn extends VerifiedMember, IssuedToken {
  name: string
  hasSecondFactor: boolean
}

/**
 * Signs a member in with the password, and with a code where a second factor is set up. If the client address
 * is new for the member, the member gets an e-mail about it.
 * @param raw.merchantId the merchant, if the e-mail address is in several teams; default: of the active
 *   merchants, the one that invited the person first
 * @throws DomainError INVALID_INPUT, RATE_LIMITED, CREDENTIALS_REJECTED, SECOND_FACTOR_REQUIRED (the password
 *   is right), ACCOUNT_INACTIVE, ADDRESS_NOT_ALLOWED, OVERLOADED
 * @see docs/design/rules.md#people
 */
export async function signInMember(ctx: Context, raw: z.input<typeof signInInput>): Promise<SignedIn> {
  const { email, password, code, merchantId, cookie } = readInput(signInInput, raw)
  if (cookie) checkMayKeep(ctx)
  const find = () => findMember(asPlatform(ctx, reason).pool, email, merchantId ?? null)
  return withVerifiedMember(ctx, { email, find, password, code: code ?? null }, async (member) => {
    checkAdmitted(ctx, member)
    const sessionId = await transact(asPlatform(ctx, reason), async (tx) => {
      const id = await openSession(tx, member, ctx.clientAddress)
      await recordMade(tx, recordingOf(ctx, 'signIn', { ...member, apiKeyId: id }), ['session', id])
      if (await isNewAddress(tx, member.memberId, id, ctx.clientAddress)) await notifyMember(tx, ctx, member)
      return id
    })
    return welcome(ctx, member, sessionId, cookie)
  })
}

/** Writes an e-mail to the member about a sign-in from a new address: a stranger may have signed in. */
async function notifyMember(tx: PoolClient, ctx: Context, member: Candidate): Promise<void> {
  const { memberId, merchantId, merchant, locale, name, email } = member
  const policy = { max: newAddressEmailsMax, windowMs: limits.resetsWindowMs }
  const { allowed } = await takeHit(tx, `new-address:${memberId}`, policy)
  if (!allowed) return
  await writeEmail(tx, ctx.access.master, merchantId, {
    template: 'new-address',
    locale,
    to: { name, address: email },
    merchant,
    where: ctx.clientAddress ?? '?',
    at: new Date().toISOString(),
  })
}

/**
 * Finds a member by e-mail address, in the team of the given merchant; without one, as `signInMember` says.
 */
async function findMember(pool: Pool, address: string, merchantId: number | null): Promise<Candidate | null> {
  const { rows } = await pool.query<Candidate>({
    name: 'find-member',
    text: `SELECT ${candidateColumns}
           FROM team_member t JOIN member_secret s ON s.member_id = t.id
           JOIN merchant m ON m.id = t.merchant_id
           WHERE t.email = $1 AND t.status = 'active' AND coalesce(t.merchant_id = $2, true)
           ORDER BY m.status = 'active' DESC, t.id LIMIT 1`,
    values: [address, merchantId],
  })
  return rows[0] ?? null
}

/** Refuses to keep a session in a cookie for a caller that is no page of the service. */
export function checkMayKeep({ sessionCookie, addresses }: Context): void {
  if (sessionCookie?.write) return
  const message = `is only for pages of the service itself, at ${addresses.publicUrl}, and not for WebSockets`
  throw invalidInput([{ field: 'cookie', message }])
}

/**
 * Makes the answer to a sign-in after its session is committed.
 * @param cookie whether the browser keeps the session in a cookie: the answer is then without the token
 */
export async function welcome(
  ctx: Context,
  member: Candidate,
  sessionId: number,
  cookie: boolean,
): Promise<SignedIn> {
  const { memberId, merchantId, role, email, name, hasSecondFactor } = member
  const issued = await sessionToken(ctx.access, member, sessionId)
  if (cookie) ctx.sessionCookie?.write?.(issued)
  return {
    ...issued,
    token: cookie ? '' : issued.token,
    memberId,
    merchantId,
    role,
    email,
    name,
    hasSecondFactor,
  }
}

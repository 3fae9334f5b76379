import { z } from 'zod'
import { recordChange, recordingOf } from '../../audit/audit-log.ts'
import { isGuessable } from '../../identity/members/guessable-passwords.ts'
import { addressBlock } from '../../shared/ip-whitelist.ts'
import { hashOfMemberToken, makeMemberToken } from '../../identity/members/member-tokens.ts'
import { takeHit } from '../../limits/window.ts'
import { forgiveAccount, isKnownAddress } from '../../limits/sign-in-waits.ts'
import type { Context, Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { exactText, invalidInput, readInput, wholeNumber } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { memberEmail } from './invite.ts'
import { writeEmail } from './emails.ts'
import { ownAccount, withOwnPassword } from './own-account.ts'
import { sqlFunction } from '../../database/sql-function.ts'

/** The reason to work without row-level security. */
const reason = 'no merchant may read the secrets of a member; the e-mail or the session names the member'

const setPassword = sqlFunction('change_password', {
  takes: { member: 'int', hashedPassword: 'text', kept: 'int' },
  gives: 'void',
})
const enqueueReset = sqlFunction('request_password_reset', {
  takes: { email: 'text', merchant: 'int?' },
  gives: 'void',
})
const offerReset = sqlFunction('offer_password_reset', {
  takes: { member: 'int', tokenHash: 'bytea', lifetimeMs: 'int' },
  gives: 'void',
})
const setPasswordByToken = sqlFunction('reset_password', {
  takes: { tokenHash: 'bytea', hashedPassword: 'text', member: 'int' },
  gives: 'boolean',
})

/** Time for which the link to set a new password works. */
const resetLifetimeMs = 3_600_000

/** The most members with the same e-mail address, each in another team, that one request writes to. */
const resetEmailsMax = 5

/** A password that a member chooses: only its length is checked here (ASVS 6.2; PCI DSS 8.3.6). */
export const chosenPassword = exactText({ max: limits.passwordLengthMax }).refine(
  (value) => Array.from(value).length >= limits.passwordLengthMin,
  `must have at least ${limits.passwordLengthMin} characters`,
)
/** The token of an e-mail. */
export const memberTokenText = exactText({ min: 1, max: 100 })

/** The member who chooses a password. */
interface Chooser {
  email: string
  name: string
  /** The merchant's name. */
  merchant: string
}

/** Refuses a password that is easy to guess. @throws DomainError INVALID_INPUT */
export function checkPassword(password: string, { email, name, merchant }: Chooser): void {
  if (!password.toLowerCase().includes(email) && !isGuessable(password, [email, name, merchant])) return
  const message = 'is too easy to guess: it is mostly a common word, neighbouring keys or a name'
  throw invalidInput([{ field: 'password', message }])
}

/**
 * Changes the password of the caller and ends the member's other sessions.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED, FORBIDDEN (no person), CREDENTIALS_REJECTED,
 *   RATE_LIMITED, OVERLOADED
 */
export async function changePassword(ctx: Context, current: string, chosen: string): Promise<void> {
  const { sessionId } = ownAccount(ctx)
  const { password } = readInput(z.object({ password: chosenPassword }), { password: chosen })
  await withOwnPassword(ctx, { password: current, field: 'current' }, async (member) => {
    checkPassword(password, member)
    const passwordHash = await ctx.access.passwords.hash(password)
    await transact(asPlatform(ctx, reason), async (tx) => {
      await setPassword(tx, { member: member.memberId, hashedPassword: passwordHash, kept: sessionId })
      await recordChange(tx, recordingOf(ctx, 'changePassword'), { target: ['member', member.memberId] })
    })
  })
}

export const resetRequestInput = z.object({
  email: memberEmail,
  merchantId: wholeNumber(1, 2_147_483_647).nullish(),
})

/**
 * Requests an e-mail with a link to set a new password. A job looks up whether there is such a member, so
 * that neither the answer nor its time shows it. An address from which the member has signed in before has a
 * limit of its own, which requests of strangers do not use up.
 * @throws DomainError INVALID_INPUT, RATE_LIMITED
 */
export async function requestPasswordReset(
  ctx: Context,
  raw: z.input<typeof resetRequestInput>,
): Promise<void> {
  const { email, merchantId } = readInput(resetRequestInput, raw)
  const { pool } = asPlatform(ctx, reason)
  const { resetsPerAccountMax, resetsPerAddressMax, resetsWindowMs: windowMs } = limits
  const perAccount = { max: resetsPerAccountMax, windowMs }
  const perAddress = { max: resetsPerAddressMax, windowMs }
  const block = addressBlock(ctx.clientAddress)
  const isKnown = await isKnownAddress(pool, email, ctx.clientAddress)
  const hits = [
    await takeHit(pool, `reset:address:${block}`, perAddress),
    await takeHit(pool, `reset:account:${email}${isKnown ? ` ${block}` : ''}`, perAccount),
  ]
  const full = hits.find(({ allowed }) => !allowed)
  if (full) throw new DomainError('RATE_LIMITED', undefined, { retryAfterS: full.resetS })
  await enqueueReset(pool, { email, merchant: merchantId ?? null })
}

/**
 * Writes the e-mail of a requested reset to each member with this address. A later e-mail to the same member
 * makes the token of an earlier one invalid.
 */
export async function sendPasswordReset(
  { database, access: { master } }: Pick<Services, 'database' | 'access'>,
  email: string,
  merchantId: number | null,
): Promise<void> {
  await transact(asPlatform({ database }, reason), async (tx) => {
    const { rows } = await tx.query<{
      id: number
      merchantId: number
      name: string
      merchant: string
      locale: 'fr' | 'en'
    }>(
      `SELECT t.id, t.merchant_id AS "merchantId", t.name, m.name AS merchant, m.locale
       FROM team_member t JOIN merchant m ON m.id = t.merchant_id
       WHERE t.email = $1 AND t.status = 'active' AND m.status = 'active'
         AND coalesce(t.merchant_id = $2, true)
       ORDER BY t.id LIMIT $3`,
      [email, merchantId, resetEmailsMax],
    )
    for (const { id, merchantId: shop, name, merchant, locale } of rows) {
      const { token, hash } = makeMemberToken(master)
      await offerReset(tx, { member: id, tokenHash: hash, lifetimeMs: resetLifetimeMs })
      const to = { name, address: email }
      await writeEmail(tx, master, shop, { template: 'password-reset', locale, to, merchant, token })
    }
  })
}

export const resetInput = z.object({ token: memberTokenText, password: chosenPassword })

/**
 * Sets a new password with the token of the e-mail, once. Ends every session of the member; a second factor
 * stays.
 * @throws DomainError INVALID_INPUT (also: the token is unknown, used, or older than an hour), OVERLOADED
 */
export async function resetPassword(ctx: Context, raw: z.input<typeof resetInput>): Promise<void> {
  const { token, password } = readInput(resetInput, raw)
  const hash = hashOfMemberToken(ctx.access.master, token)
  const { rows } = await asPlatform(ctx, reason).pool.query<Chooser & { id: number; merchantId: number }>(
    `SELECT t.id, t.merchant_id AS "merchantId", t.email, t.name, m.name AS merchant
     FROM member_secret s JOIN team_member t ON t.id = s.member_id JOIN merchant m ON m.id = t.merchant_id
     WHERE s.reset_hash = $1 AND s.reset_expires_at > now() AND t.status = 'active'`,
    [hash],
  )
  const [member] = rows
  if (!member) throw unusable()
  checkPassword(password, member)
  const passwordHash = await ctx.access.passwords.hash(password)
  await transact(asPlatform(ctx, reason), async (tx) => {
    const isDone = await setPasswordByToken(tx, {
      tokenHash: hash,
      hashedPassword: passwordHash,
      member: member.id,
    })
    if (!isDone) throw unusable()
    await forgiveAccount(tx, member.email, ctx.clientAddress)
    const recording = recordingOf(ctx, 'resetPassword', { ...member, memberId: member.id, apiKeyId: 0 })
    await recordChange(tx, recording, { target: ['member', member.id] })
  })
}

function unusable(): DomainError {
  return invalidInput([{ field: 'token', message: 'is not a valid reset token, or was already used' }])
}

import { asPlatform } from '../../database/as-platform.ts'
import { isAddressAllowed } from '../../shared/ip-whitelist.ts'
import type { VerifiedMember } from '../../identity/members/sessions.ts'
import { takeTry } from '../../limits/sign-in-waits.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import { verifySecondFactor } from './verify-second-factor.ts'
import { recordAccess } from '../../identity/changes/record-access.ts'

/** The reason to read without row-level security. */
const reason = 'finds out who signs in, and so which merchant'

/** A member with the data that the checks of a sign-in need. */
export interface Candidate extends VerifiedMember {
  name: string
  passwordHash: string | null
  hasSecondFactor: boolean
  /** The merchant's name. */
  merchant: string
  locale: 'fr' | 'en'
  isMerchantActive: boolean
  whitelist: readonly string[]
}

/** Columns of a candidate, of `team_member t`, `member_secret s` and `merchant m`. */
export const candidateColumns = `t.id AS "memberId", t.merchant_id AS "merchantId", t.role, t.email, t.name,
  s.password_hash AS "passwordHash", t.second_factor_at IS NOT NULL AS "hasSecondFactor",
  m.name AS merchant, m.locale, m.status = 'active' AS "isMerchantActive", m.ip_whitelist AS whitelist`

interface Claimed {
  email: string
  /** Finds the member that the caller claims to be; null if there is none. */
  find: () => Promise<Candidate | null>
  password: string
  /** A code of the second factor; null if it is missing, `undefined` where the password alone is enough. */
  code?: string | null | undefined
}

/**
 * Checks the password and the second factor of a member. Each try is counted as a failure before it is
 * checked, so that tries at the same time cannot exceed the limits. A wrong password gets the same answer
 * after the same work, whether there is such a member or not.
 * @param then the action after the check; if it throws, the try is not counted
 * @throws DomainError RATE_LIMITED, CREDENTIALS_REJECTED, SECOND_FACTOR_REQUIRED (the password is right),
 *   OVERLOADED, and every error of `then`
 */
export async function withVerifiedMember<T>(
  ctx: Context,
  { email, find, password, code }: Claimed,
  then: (member: Candidate) => Promise<T>,
): Promise<T> {
  const { access, database } = ctx
  const attempt = await takeTry(asPlatform({ database }, reason).pool, email, ctx.clientAddress)
  let isWrong = false
  let isRight = false
  try {
    const member = await find()
    const hasPassword = await access.passwords.matches(password, member?.passwordHash ?? null)
    isWrong = !hasPassword
    if (member && hasPassword && member.hasSecondFactor && code !== undefined) {
      if (code === null) throw new DomainError('SECOND_FACTOR_REQUIRED')
      await attempt.takeCode()
      isWrong = !(await verifySecondFactor(
        asPlatform({ database }, reason).pool,
        access.master,
        member.memberId,
        code,
      ))
    }
    if (!member || isWrong) throw await rejected(ctx, attempt.mustAlert, member)
    const result = await then(member)
    isRight = true
    return result
  } finally {
    if (isRight) await attempt.succeed()
    else if (!isWrong) await attempt.forget()
  }
}

/**
 * Refuses a verified member whose account is inactive or whose client address is not allowed. A refused
 * address is recorded in the merchant's log.
 * @throws DomainError ACCOUNT_INACTIVE, ADDRESS_NOT_ALLOWED
 */
export function checkAdmitted(
  { access, clientAddress }: Context,
  { merchantId, isMerchantActive, whitelist }: Candidate,
): void {
  if (!isMerchantActive) throw new DomainError('ACCOUNT_INACTIVE')
  if (isAddressAllowed(whitelist, clientAddress)) return
  access.blocked.record(merchantId, clientAddress)
  throw new DomainError('ADDRESS_NOT_ALLOWED')
}

/**
 * Logs a rejected sign-in. After ten failures in a row from one address, or ten in an hour from all
 * addresses, the merchant gets a security alert.
 * @returns the refusal for the caller
 */
async function rejected(ctx: Context, mustAlert: boolean, member: Candidate | null): Promise<DomainError> {
  ctx.log.info({ clientAddress: ctx.clientAddress }, 'a sign-in was rejected')
  if (member && mustAlert) {
    const data = {
      kind: 'auth_failures',
      message: `Signing in as ${member.email} failed ${limits.signInAlertFailures} times.`,
      team_member_id: member.memberId,
      ...(ctx.clientAddress && { ip: ctx.clientAddress }),
    }
    await recordAccess(asPlatform(ctx, reason).pool, {
      merchant: member.merchantId,
      kind: 'security_alert',
      what: data,
    })
  }
  return new DomainError('CREDENTIALS_REJECTED', 'The e-mail address, the password or the code is not valid.')
}

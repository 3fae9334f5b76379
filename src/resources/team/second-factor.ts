import { randomBytes } from 'node:crypto'
import { recordChange, recordedChange, recordingOf } from '../../audit/audit-log.ts'
import { makeRecoveryCodes } from '../../identity/members/member-tokens.ts'
import { encrypt } from '../../identity/secrets/encrypt.ts'
import { base32, totpUri } from '../../identity/members/totp.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { invalidInput } from '../../shared/input.ts'
import { ownAccount, withOwnPassword } from './own-account.ts'
import { verifyTotp, totpAad } from './verify-second-factor.ts'
import { sqlFunction } from '../../database/sql-function.ts'

/** The reason to work without row-level security. */
const reason = 'no merchant may read the secrets of a member'

const keepSecret = sqlFunction('start_totp', {
  takes: { member: 'int', encrypted: 'bytea' },
  gives: 'text?',
})
const beginFactor = sqlFunction('confirm_totp', {
  takes: { member: 'int', codeHashes: 'bytea[]' },
  gives: 'boolean',
})
const endFactor = sqlFunction('disable_totp', { takes: { member: 'int' }, gives: 'boolean' })

/** The data to set up an authenticator application; shown only once, while it is set up. */
export interface TotpSetup {
  /** The secret in base 32, for typing. */
  secret: string
  /** `otpauth://…`, for a QR code. */
  uri: string
}

/**
 * Begins to set up a second factor (RFC 6238). The factor is needed only after `confirmSecondFactor` has
 * accepted a code of it.
 * @throws DomainError INVALID_INPUT, FORBIDDEN (the caller is not a person), CREDENTIALS_REJECTED,
 *   RATE_LIMITED, STATE_CONFLICT (a second factor is set up already)
 */
export async function startSecondFactor(ctx: Context, password: string): Promise<TotpSetup> {
  const { memberId, email } = await withOwnPassword(ctx, { password }, async (member) => member)
  const secret = randomBytes(secretBytes)
  const issuer = await transact(asPlatform(ctx, reason), async (tx) => {
    const merchant = await keepSecret(tx, {
      member: memberId,
      encrypted: encrypt(ctx.access.master.encryptionKey, secret, totpAad(memberId)),
    })
    if (merchant === null) throw new DomainError('STATE_CONFLICT', 'Two-factor sign-in is already set up.')
    await recordChange(tx, recordingOf(ctx, 'startTotp'), { target: ['member', memberId] })
    return merchant
  })
  return { secret: base32(secret), uri: totpUri(issuer, email, secret) }
}

/**
 * Completes the set-up with a code of the application: from now on a sign-in needs a code.
 * @returns ten recovery codes, each valid once; they are shown only now
 * @throws DomainError FORBIDDEN (the caller is not a person), INVALID_INPUT (no valid code), STATE_CONFLICT
 *   (a second factor is set up already)
 */
export async function confirmSecondFactor(ctx: Context, code: string): Promise<string[]> {
  const { memberId } = ownAccount(ctx)
  const { master } = ctx.access
  const { codes, hashes } = makeRecoveryCodes(master, memberId)
  await transact(asPlatform(ctx, reason), async (tx) => {
    if (!(await verifyTotp(tx, master, memberId, code))) throw wrongCode()
    const isNew = await recordedChange(tx, recordingOf(ctx, 'confirmTotp'), ['member', memberId], () =>
      beginFactor(tx, { member: memberId, codeHashes: hashes }),
    )
    if (!isNew) throw new DomainError('STATE_CONFLICT', 'Two-factor sign-in is already set up.')
  })
  return codes
}

/**
 * Removes the second factor. After that a sign-in needs only the password.
 * @param code a code of the application, or a recovery code
 * @throws DomainError INVALID_INPUT, FORBIDDEN (the caller is not a person), CREDENTIALS_REJECTED (password
 *   or code), RATE_LIMITED, STATE_CONFLICT (no second factor is set up)
 */
export async function endSecondFactor(ctx: Context, password: string, code: string): Promise<void> {
  const { memberId } = await withOwnPassword(ctx, { password, code }, async (member) => member)
  await transact(asPlatform(ctx, reason), async (tx) => {
    const isEnded = await recordedChange(tx, recordingOf(ctx, 'disableTotp'), ['member', memberId], () =>
      endFactor(tx, { member: memberId }),
    )
    if (!isEnded) throw new DomainError('STATE_CONFLICT', 'Two-factor sign-in is not set up.')
  })
}

const secretBytes = 20

function wrongCode(): DomainError {
  return invalidInput([{ field: 'code', message: 'is not a valid code, or was already used' }])
}

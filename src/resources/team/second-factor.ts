import { randomBytes } from 'node:crypto'
import { recordChange, recordedChange, recordingOf } from '../../audit/audit-log.ts'
import { makeRecoveryCodes } from '../../identity/proofs.ts'
import { seal } from '../../identity/seal.ts'
import { base32, totpUri } from '../../identity/totp.ts'
import type { Context } from '../../context.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { invalidInput } from '../../shared/input.ts'
import { ownAccount, withOwnPassword } from './own-account.ts'
import { provesTotp, totpPlace } from './prove.ts'

/** What an authenticator application is set up with; shown while it is set up, and never again. */
export interface TotpSetup {
  /** In base 32, to be typed. */
  secret: string
  /** `otpauth://…`, for a QR code. */
  uri: string
}

/**
 * Begins to set up a second factor (RFC 6238): it counts once `confirmSecondFactor` has seen a code of it.
 * @throws DomainError INVALID_INPUT, FORBIDDEN (no person), CREDENTIALS_REJECTED, RATE_LIMITED,
 *   STATE_CONFLICT (there is one)
 */
export async function startSecondFactor(ctx: Context, password: string): Promise<TotpSetup> {
  const { memberId, email } = await withOwnPassword(ctx, { password }, async (member) => member)
  const secret = randomBytes(secretBytes)
  const issuer = await transact(ctx.database, async (tx) => {
    const { rows } = await tx.query<{ name: string }>(
      `UPDATE member_secret s SET totp_sealed = $2, totp_step = 0
       FROM team_member t JOIN merchant m ON m.id = t.merchant_id
       WHERE s.member_id = $1 AND t.id = s.member_id AND t.second_factor_at IS NULL AND t.status = 'active'
       RETURNING m.name`,
      [memberId, seal(ctx.access.master.sealingKey, secret, totpPlace(memberId))],
    )
    if (!rows[0]) throw new DomainError('STATE_CONFLICT', 'A second factor is set up already.')
    await recordChange(tx, recordingOf(ctx, 'startTotp'), { target: ['member', memberId] })
    return rows[0].name
  })
  return { secret: base32(secret), uri: totpUri(issuer, email, secret) }
}

/**
 * Ends the setting up with a code of the application: from now on signing in takes one.
 * @returns ten recovery codes, each good once; shown now and never again
 * @throws DomainError FORBIDDEN (no person), INVALID_INPUT (no valid code), STATE_CONFLICT (there is one)
 */
export async function confirmSecondFactor(ctx: Context, code: string): Promise<string[]> {
  const { memberId } = ownAccount(ctx)
  const { master } = ctx.access
  const { codes, hashes } = makeRecoveryCodes(master, memberId)
  await transact(ctx.database, async (tx) => {
    if (!(await provesTotp(tx, master, memberId, code))) throw wrongCode()
    const { rowCount } = await recordedChange(tx, recordingOf(ctx, 'confirmTotp'), ['member', memberId], () =>
      tx.query(
        `UPDATE team_member SET second_factor_at = service_now() WHERE id = $1 AND second_factor_at IS NULL`,
        [memberId],
      ),
    )
    if (rowCount === 0) throw new DomainError('STATE_CONFLICT', 'A second factor is set up already.')
    await tx.query('UPDATE member_secret SET recovery_hashes = $2 WHERE member_id = $1', [memberId, hashes])
  })
  return codes
}

/**
 * Ends the second factor: signing in takes the password alone again.
 * @param code of the application, or a recovery code
 * @throws DomainError INVALID_INPUT, FORBIDDEN (no person), CREDENTIALS_REJECTED (password or code),
 *   RATE_LIMITED, STATE_CONFLICT (there is none)
 */
export async function endSecondFactor(ctx: Context, password: string, code: string): Promise<void> {
  const { memberId } = await withOwnPassword(ctx, { password, code }, async (member) => member)
  await transact(ctx.database, async (tx) => {
    const { rowCount } = await recordedChange(tx, recordingOf(ctx, 'disableTotp'), ['member', memberId], () =>
      tx.query(
        'UPDATE team_member SET second_factor_at = NULL WHERE id = $1 AND second_factor_at IS NOT NULL',
        [memberId],
      ),
    )
    if (rowCount === 0) throw new DomainError('STATE_CONFLICT', 'There is no second factor.')
    await tx.query(
      `UPDATE member_secret SET totp_sealed = NULL, recovery_hashes = '{}' WHERE member_id = $1`,
      [memberId],
    )
  })
}

const secretBytes = 20

function wrongCode(): DomainError {
  return invalidInput([{ field: 'code', message: 'is no valid code, or was used' }])
}

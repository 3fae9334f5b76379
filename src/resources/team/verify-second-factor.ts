import type { Pool, PoolClient } from 'pg'
import { hashOfRecoveryCode } from '../../identity/members/member-tokens.ts'
import { decrypt } from '../../identity/secrets/encrypt.ts'
import type { MasterSecret } from '../../identity/secrets/secrets.ts'
import { stepOfCode } from '../../identity/members/totp.ts'
import { sqlFunction } from '../../database/sql-function.ts'

const consumeRecoveryCode = sqlFunction('use_recovery_code', {
  takes: { member: 'int', codeHash: 'bytea' },
  gives: 'boolean?',
})
const consumeTotpStep = sqlFunction('use_totp_step', {
  takes: { member: 'int', step: 'bigint', encrypted: 'bytea' },
  gives: 'boolean?',
})

/**
 * Whether the code is one of the application or an unused recovery code. A valid code cannot be used again.
 */
export async function verifySecondFactor(
  client: Pool | PoolClient,
  master: MasterSecret,
  memberId: number,
  code: string,
): Promise<boolean> {
  if (await verifyTotp(client, master, memberId, code)) return true
  const codeHash = hashOfRecoveryCode(master, memberId, code)
  return (await consumeRecoveryCode(client, { member: memberId, codeHash })) ?? false
}

/**
 * Whether the text is a valid code of the member's authenticator application. If two calls present the same
 * code at once, only one gets true.
 */
export async function verifyTotp(
  client: Pool | PoolClient,
  master: MasterSecret,
  memberId: number,
  typed: string,
): Promise<boolean> {
  const code = typed.replaceAll(/\s/g, '')
  if (!/^\d{6}$/.test(code)) return false
  const { rows } = await client.query<{ encrypted: Buffer | null }>(
    'SELECT totp_encrypted AS encrypted FROM member_secret WHERE member_id = $1',
    [memberId],
  )
  const encrypted = rows[0]?.encrypted
  const step = encrypted
    ? stepOfCode(decrypt(master.encryptionKey, encrypted, totpAad(memberId)), code)
    : null
  if (!encrypted || step === null) return false
  return (await consumeTotpStep(client, { member: memberId, step, encrypted })) ?? false
}

/** The associated data that ties the encrypted secret to its member. */
export function totpAad(memberId: number): string {
  return `totp:${memberId}`
}

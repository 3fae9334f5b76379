import type { Pool, PoolClient } from 'pg'
import { hashOfRecoveryCode } from '../../identity/proofs.ts'
import { unseal } from '../../identity/seal.ts'
import type { MasterSecret } from '../../identity/secrets.ts'
import { stepOfCode } from '../../identity/totp.ts'

/** Whether this is a code of the application or a recovery code that was not used yet. It is used by that. */
export async function provesSecondFactor(
  client: Pool | PoolClient,
  master: MasterSecret,
  memberId: number,
  code: string,
): Promise<boolean> {
  if (await provesTotp(client, master, memberId, code)) return true
  const { rowCount } = await client.query(
    `UPDATE member_secret SET recovery_hashes = array_remove(recovery_hashes, $2)
     WHERE member_id = $1 AND $2 = ANY(recovery_hashes)`,
    [memberId, hashOfRecoveryCode(master, memberId, code)],
  )
  return rowCount === 1
}

/** Whether this is a code of the application. Of two who show one code at once, one has shown it. */
export async function provesTotp(
  client: Pool | PoolClient,
  master: MasterSecret,
  memberId: number,
  typed: string,
): Promise<boolean> {
  const code = typed.replaceAll(/\s/g, '')
  if (!/^\d{6}$/.test(code)) return false
  const { rows } = await client.query<{ sealed: Buffer | null }>(
    'SELECT totp_sealed AS sealed FROM member_secret WHERE member_id = $1',
    [memberId],
  )
  const sealed = rows[0]?.sealed
  const step = sealed ? stepOfCode(unseal(master.sealingKey, sealed, totpPlace(memberId)), code) : null
  if (step === null) return false
  const { rowCount } = await client.query(
    'UPDATE member_secret SET totp_step = $2 WHERE member_id = $1 AND totp_step < $2 AND totp_sealed = $3',
    [memberId, step, sealed],
  )
  return rowCount === 1
}

/** What ties the sealed secret to its member. */
export function totpPlace(memberId: number): string {
  return `totp:${memberId}`
}

import type pg from 'pg'
import { type Recording, recordChange } from '../../audit/audit-log.ts'
import { locks } from '../../database/locks.ts'

/** An API key as the audit log shows it when its holder changes. */
interface IssuedKey {
  id: number
  issued_to_id: number | null
  revoked_at: Date | null
}

/**
 * Runs a change of a member, and writes the audit entry of each API key that was shown to the member and that
 * the change revokes (in `change_member`) or hands over.
 * @returns the ids of the keys that were revoked
 */
export async function recordKeys(
  tx: pg.PoolClient,
  recording: Recording,
  memberId: number,
  work: () => Promise<void>,
): Promise<number[]> {
  // This lock keeps other transactions from issuing or revoking a key meanwhile.
  await tx.query('SELECT pg_advisory_xact_lock($1, $2)', [locks.access, recording.merchantId])
  const before = await tx.query<IssuedKey>(
    `SELECT id, issued_to_id, revoked_at FROM api_key
     WHERE issued_to_id = $1 AND revoked_at IS NULL ORDER BY id`,
    [memberId],
  )
  await work()
  const after = await tx.query<IssuedKey>(
    'SELECT id, issued_to_id, revoked_at FROM api_key WHERE id = ANY ($1)',
    [before.rows.map(({ id }) => id)],
  )
  const now = new Map(after.rows.map(({ id, ...key }) => [id, key]))
  for (const { id, ...was } of before.rows) {
    await recordChange(tx, recording, { target: ['api_key', id], before: was, after: now.get(id) })
  }
  return after.rows.flatMap(({ id, revoked_at: revokedAt }) => (revokedAt === null ? [] : [id]))
}

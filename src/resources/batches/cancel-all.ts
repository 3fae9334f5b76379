import { sqlFunction } from '../../database/sql-function.ts'
import { platformRecording, recordedChange } from '../../audit/audit-log.ts'
import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'

/**
 * Cancels what was not sent of all batches of a deactivated merchant, drafts too: what was set aside for them
 * is free again. What is at an operator ends as that says, and its batch with the last of it. Of a merchant
 * that is active, or not there, nothing is cancelled.
 *
 * Choice: a command of the platform's owner, as with payouts. Nothing begins meanwhile.
 * @returns how many were cancelled
 */
export async function cancelBatchesOf(
  services: Pick<Services, 'database'>,
  merchantId: number,
): Promise<number> {
  const { pool } = asPlatform(services, 'an administrator names the merchant')
  const { rows: open } = await pool.query<{ id: number }>(
    'SELECT id FROM batch WHERE merchant_id = $1 AND processed_at IS NULL AND cancel_requested_at IS NULL',
    [merchantId],
  )
  let cancelled = 0
  for (const { id } of open) {
    const recording = platformRecording(merchantId, 'merchant cancel-payouts')
    const moved = await transact({ pool }, (tx) =>
      recordedChange(tx, recording, ['batch', id], () => cancelDead(tx, { merchant: merchantId, batch: id })),
    )
    if (moved) cancelled += 1
  }
  return cancelled
}

const cancelDead = sqlFunction('cancel_batch_of_inactive', {
  takes: { merchant: 'int', batch: 'int' },
  gives: 'boolean',
})

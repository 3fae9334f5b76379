import { sqlFunction } from '../../database/sql-function.ts'
import { platformRecording, recordedChange } from '../../audit/audit-log.ts'
import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'

/**
 * Cancels the unsent recipients of all open batches of a deactivated merchant, drafts included. Money that
 * was reserved for them is available again. Payments that operators already have end as the operators say; a
 * batch ends with the last of its payments. The function does nothing for a merchant that is active or does
 * not exist.
 *
 * Choice: a person of the platform runs this command, as for payouts. No payment of the merchant begins
 * meanwhile, because the merchant is not active.
 * @returns the number of batches whose cancellation this call began
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

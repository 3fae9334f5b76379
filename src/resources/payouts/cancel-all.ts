import { sqlFunction } from '../../database/sql-function.ts'
import { platformRecording, recordChange } from '../../audit/audit-log.ts'
import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'

const cancelSome = sqlFunction('cancel_payouts_of', { takes: { merchant: 'int', take: 'int' }, gives: 'int' })

/** The most payouts, and also the most deposits, that one statement cancels. */
const stepMax = 500

/**
 * Cancels all payouts of a deactivated merchant that have not begun, also those with a later date, and all
 * its deposits that wait for approval. Their reserved money becomes available again, and each one emits its
 * cancelled event. Payouts that have begun are not touched: the answer of their operator ends them.
 *
 * Choice: this is a command of the platform's owner and not a part of the deactivation, because a person must
 * first find out whether the payees get their money in another way. No payment begins in the meantime.
 * @returns the number of cancelled payouts and deposits
 * @throws DomainError NOT_FOUND, STATE_CONFLICT where the merchant is active
 */
export async function cancelPayoutsOf(
  services: Pick<Services, 'database'>,
  merchantId: number,
): Promise<number> {
  const { pool } = asPlatform(services, 'an administrator names the merchant')
  const { rows } = await pool.query<{ status: string }>('SELECT status FROM merchant WHERE id = $1', [
    merchantId,
  ])
  const [merchant] = rows
  if (!merchant) throw new DomainError('NOT_FOUND', `There is no merchant ${merchantId}.`)
  if (merchant.status === 'active') {
    throw new DomainError('STATE_CONFLICT', `Merchant ${merchantId} is active: deactivate it first.`)
  }
  let cancelled = 0
  for (;;) {
    const count = await transact({ pool }, async (tx) => {
      const n = await cancelSome(tx, { merchant: merchantId, take: stepMax })
      const recording = platformRecording(merchantId, 'merchant cancel-payouts')
      const change = { target: ['merchant', merchantId], after: { payouts_cancelled: n } } as const
      if (n > 0) await recordChange(tx, recording, change)
      return n
    })
    cancelled += count
    if (count < stepMax) return cancelled
  }
}

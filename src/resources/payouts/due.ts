import { sqlFunction } from '../../database/sql-function.ts'
import { asPlatform } from '../../database/as-platform.ts'
import type { Services } from '../../context.ts'

/** The reason to read without row-level security. */
const reason = 'a job works for all merchants'

/** The most payouts, deposits or changes of settings whose approvals one run expires. */
export const expiriesMax = 100

const enqueueDue = sqlFunction('enqueue_due', { takes: {}, gives: 'void' })
const expireApprovals = sqlFunction('expire_approvals', { takes: { take: 'int' }, gives: 'int' })
const expireBatch = sqlFunction('expire_batch', { takes: {}, gives: 'boolean' })

/**
 * Enqueues the payouts and batches that are due: scheduled, approved and delayed ones, even if they became
 * due while no process ran. Cancels payouts, deposits, batches and changes of settings that were not approved
 * in time.
 * @returns whether there may be more to do
 */
export async function runDueWork({ database }: Services, take: number): Promise<boolean> {
  const { pool } = asPlatform({ database }, reason)
  await enqueueDue(pool, {})
  const expired = await expireApprovals(pool, { take })
  const batchExpired = await expireBatch(pool, {})
  return expired > 0 || batchExpired
}

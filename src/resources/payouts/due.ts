import { sqlFunction } from '../../database/sql-function.ts'
import { asPlatform } from '../../database/as-platform.ts'
import type { Services } from '../../context.ts'

/** Why this looks past row-level security. */
const reason = 'a job works for all merchants'

/** Payouts whose approval one run ends. */
const expiriesMax = 100

const enqueueDue = sqlFunction('enqueue_due', { takes: {}, gives: 'void' })
const expireApprovals = sqlFunction('expire_approvals', { takes: { take: 'int' }, gives: 'int' })
const expireBatch = sqlFunction('expire_batch', { takes: {}, gives: 'boolean' })

/**
 * Sees to the payouts and batches whose time has come: what is due is enqueued (what was scheduled, approved
 * or held up; also what became due while nothing ran), what nobody approved in time is cancelled.
 * @returns whether there is more to do
 */
export async function seeToDuePayouts({ database, sequencer }: Services): Promise<boolean> {
  const { pool } = asPlatform({ database }, reason)
  await enqueueDue(pool, {})
  const payoutsExpired = await expireApprovals(pool, { take: expiriesMax })
  const batchExpired = await expireBatch(pool, {})
  if (payoutsExpired > 0 || batchExpired) sequencer.notify()
  return payoutsExpired === expiriesMax || batchExpired
}

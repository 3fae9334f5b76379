import { asPlatform } from '../../database/as-platform.ts'
import type { Services } from '../../context.ts'

/** Why this looks past row-level security. */
const reason = 'a job works for all merchants'

/** Payouts whose approval one run ends. */
const expiriesMax = 100

/**
 * Sees to the payouts and batches whose time has come: what is due is enqueued (what was scheduled, approved
 * or held up; also what became due while nothing ran), what nobody approved in time is cancelled.
 * @returns whether there is more to do
 */
export async function seeToDuePayouts({ database, sequencer }: Services): Promise<boolean> {
  await asPlatform({ database }, reason).pool.query({
    name: 'enqueue_due_payouts',
    text: 'SELECT enqueue_due_payouts(), enqueue_due_batches()',
  })
  const payouts = await asPlatform({ database }, reason).pool.query<{ expired: number }>({
    name: 'expire_approvals',
    text: 'SELECT expire_approvals($1) AS expired',
    values: [expiriesMax],
  })
  const batches = await asPlatform({ database }, reason).pool.query<{ expired: boolean }>({
    name: 'expire_batch',
    text: 'SELECT expire_batch() AS expired',
  })
  const payoutsExpired = payouts.rows[0]?.expired ?? 0
  const batchExpired = batches.rows[0]?.expired ?? false
  if (payoutsExpired > 0 || batchExpired) sequencer.nudge()
  return payoutsExpired === expiriesMax || batchExpired
}

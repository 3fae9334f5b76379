import type { Services } from '../../context.ts'

/** Approvals that one run ends. */
const expiriesMax = 100

/**
 * Sees to the payouts and batches whose time has come: what is due is enqueued (what was scheduled, approved
 * or held up; also what became due while nothing ran), what nobody approved in time is cancelled.
 * @returns whether there is more to do
 */
export async function seeToDuePayouts({ database, sequencer }: Services): Promise<boolean> {
  await database.pool.query({
    name: 'enqueue_due_payouts',
    text: 'SELECT enqueue_due_payouts(), enqueue_due_batches()',
  })
  const { rows } = await database.pool.query<{ expired: number }>({
    name: 'expire_approvals',
    text: 'SELECT expire_approvals($1) AS expired',
    values: [expiriesMax],
  })
  const expired = rows[0]?.expired ?? 0
  if (expired > 0) sequencer.nudge()
  return expired === expiriesMax
}

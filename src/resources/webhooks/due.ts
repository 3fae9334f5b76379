import type { Services } from '../../context.ts'
import { limits } from '../../shared/limits.ts'

/** Lanes that are begun at once. */
const webhooksDueMax = 500

/** What waited so long is given up; what is done with is kept for so long (design: reliability). */
const webhookKeptDays = 30
const webhookSweptDays = 90
const webhookSweepMax = 1_000

/**
 * Enqueues the lanes that are due and that nobody is at: retries, probes, what a process left behind.
 * @returns whether there is more to do
 */
export async function enqueueDueLanes({ database }: Services): Promise<boolean> {
  await database.pool.query({
    name: 'enqueue_due_lanes',
    text: 'SELECT enqueue_due_lanes($1, $2)',
    values: [webhooksDueMax, limits.webhookFailingLanesMax],
  })
  return false
}

/**
 * Gives up what waited for `webhookKeptDays`, and forgets what was done with `webhookSweptDays`
 * ago, in small steps.
 * @returns whether there is more to do
 */
export async function sweepWebhooks({ database }: Services): Promise<boolean> {
  const { rows } = await database.pool.query<{ swept: number }>({
    name: 'sweep_webhooks',
    text: 'SELECT sweep_webhooks($1, $2, $3) AS swept',
    values: [webhookSweepMax, webhookKeptDays, webhookSweptDays],
  })
  // A step takes few of each endpoint: only one that finds nothing was the last.
  return (rows[0]?.swept ?? 0) > 0
}

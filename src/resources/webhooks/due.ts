import type { Services } from '../../context.ts'
import { limits } from '../../shared/limits.ts'

/**
 * Enqueues the lanes that are due and that nobody is at: retries, probes, what a process left behind.
 * @returns whether there is more to do
 */
export async function enqueueDueLanes({ database }: Services): Promise<boolean> {
  await database.pool.query({
    name: 'enqueue_due_lanes',
    text: 'SELECT enqueue_due_lanes($1, $2)',
    values: [limits.webhooksDueMax, limits.webhookFailingLanesMax],
  })
  return false
}

/**
 * Gives up what waited for `limits.webhookKeptDays`, and forgets what was done with `limits.webhookSweptDays`
 * ago, in small steps.
 * @returns whether there is more to do
 */
export async function sweepWebhooks({ database }: Services): Promise<boolean> {
  const { rows } = await database.pool.query<{ swept: number }>({
    name: 'sweep_webhooks',
    text: 'SELECT sweep_webhooks($1, $2, $3) AS swept',
    values: [limits.webhookSweepMax, limits.webhookKeptDays, limits.webhookSweptDays],
  })
  // A step takes few of each endpoint: only one that finds nothing was the last.
  return (rows[0]?.swept ?? 0) > 0
}

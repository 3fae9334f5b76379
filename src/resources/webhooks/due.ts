import type { Services } from '../../context.ts'
import { limits } from '../../shared/limits.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { sqlFunction } from '../../database/sql-function.ts'

/** Why this looks past row-level security. */
const reason = 'a job works for all merchants'

const enqueueEndpoints = sqlFunction('enqueue_due_endpoints', {
  takes: { healthyMax: 'int', failingMax: 'int' },
  gives: 'int',
})
const sweep = sqlFunction('sweep_webhooks', {
  takes: { take: 'int', keptDays: 'int', sweptDays: 'int' },
  gives: 'int',
})

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
export async function enqueueDueEndpoints({ database }: Services): Promise<boolean> {
  await enqueueEndpoints(asPlatform({ database }, reason).pool, {
    healthyMax: webhooksDueMax,
    failingMax: limits.failingEndpointQueuesMax,
  })
  return false
}

/**
 * Gives up what waited for `webhookKeptDays`, and forgets what was done with `webhookSweptDays`
 * ago, in small steps.
 * @returns whether there is more to do
 */
export async function sweepWebhooks({ database }: Services): Promise<boolean> {
  const swept = await sweep(asPlatform({ database }, reason).pool, {
    take: webhookSweepMax,
    keptDays: webhookKeptDays,
    sweptDays: webhookSweptDays,
  })
  // A step takes few of each endpoint: only one that finds nothing was the last.
  return swept > 0
}

import type { Services } from '../../context.ts'
import { limits } from '../../shared/limits.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { sqlFunction } from '../../database/sql-function.ts'

/** The reason to read without row-level security. */
const reason = 'a job works for all merchants'

const enqueueEndpoints = sqlFunction('enqueue_due_endpoints', {
  takes: { healthyMax: 'int', failingMax: 'int' },
  gives: 'int',
})
const sweep = sqlFunction('sweep_webhooks', {
  takes: { take: 'int', keptDays: 'int', sweptDays: 'int' },
  gives: 'int',
})

/** The most endpoints without failures that one run enqueues. */
export const webhooksDueMax = 500

/** Days after which the service stops sending a pending delivery (see docs/design/events.md#deliveries). */
const webhookKeptDays = 30
/** Days after which the service deletes a delivery that ended. */
const webhookSweptDays = 90

/** The maximum number of deliveries that one step of the clean-up ends, and that it deletes. */
export const webhookSweepMax = 1_000

/**
 * Enqueues the endpoints that have due deliveries and that no process works on: for retries, for probes, and
 * after the death of a process.
 * @returns whether there is more to do: always false, the next run takes the rest
 */
export async function enqueueDueEndpoints({ database }: Services, most: number): Promise<boolean> {
  await enqueueEndpoints(asPlatform({ database }, reason).pool, {
    healthyMax: most,
    failingMax: Math.min(most, limits.failingEndpointQueuesMax),
  })
  return false
}

/**
 * Ends deliveries as `dead` that have been pending for `webhookKeptDays`, and deletes deliveries that ended
 * `webhookSweptDays` ago, in small steps.
 * @returns whether there may be more to do
 */
export async function sweepWebhooks({ database }: Services, take = webhookSweepMax): Promise<boolean> {
  const swept = await sweep(asPlatform({ database }, reason).pool, {
    take,
    keptDays: webhookKeptDays,
    sweptDays: webhookSweptDays,
  })
  // One step takes only a few deliveries of each endpoint: the work is done when a step finds none.
  return swept > 0
}

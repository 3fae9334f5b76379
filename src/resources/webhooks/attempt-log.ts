import type { Services } from '../../context.ts'
import { limits } from '../../shared/limits.ts'
import type { SendResult } from '../../shared/sender.ts'
import { sqlFunctionOfMany } from '../../database/sql-function.ts'

/** The time, in ms, for which successful attempts are collected before they are written. */
const attemptPendingMs = 50

export interface AttemptRecord {
  /** Id of the delivery. */
  id: bigint
  /** Attempts before this one since the delivery was created, or was last resumed or replayed. */
  count: number
  /** The time when the attempt began, by the clock of the service. */
  at: Date
  result: SendResult
  /** Milliseconds until the next attempt; null where there is none. */
  waitMs: number | null
}

/** The state of an endpoint after its attempts were written. */
export interface EndpointState {
  isActive: boolean
  failureCount: number
}

/**
 * The log that writes the results of one endpoint's attempts, in their order. Several successes share one
 * statement, so that a fast receiver seldom waits for the disk. If the process dies, events with unwritten
 * results are sent again.
 */
export interface AttemptLog {
  /**
   * Adds a successful attempt, which is written soon. Waits for the running write if too many attempts are
   * not written yet.
   * @throws Error of an earlier write that failed
   */
  add(attempt: AttemptRecord): Promise<void>
  /** Writes all attempts, a failure last. @returns the state of the endpoint after it */
  flush(failure?: AttemptRecord): Promise<EndpointState>
}

export function openAttemptLog(services: Services, endpointId: number): AttemptLog {
  let waiting: AttemptRecord[] = []
  let underWay: Promise<void> = Promise.resolve()
  let failed: { error: unknown } | null = null
  let timer: NodeJS.Timeout | undefined
  let state: EndpointState = { isActive: true, failureCount: 0 }

  /** Writes the waiting attempts. Never throws: the next `add` or `flush` throws its error. */
  function write(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const attempts = waiting
    waiting = []
    if (attempts.length === 0) return underWay
    underWay = underWay
      .then(async () => {
        state = await writeAttempts(services, endpointId, attempts)
      })
      .catch((error: unknown) => {
        failed ??= { error }
      })
    return underWay
  }

  function assertWritten(): void {
    if (failed) throw failed.error
  }

  return {
    async add(attempt) {
      waiting.push(attempt)
      if (waiting.length >= limits.webhookTakeMax) {
        await underWay
        void write()
      } else {
        timer ??= setTimeout(() => void write(), attemptPendingMs)
      }
      assertWritten()
    },
    async flush(failure) {
      if (failure) waiting.push(failure)
      await write()
      assertWritten()
      return state
    },
  }
}

const recordAttempts = sqlFunctionOfMany('record_attempts', {
  each: {
    deliveryId: 'bigint',
    count: 'int',
    success: 'boolean',
    statusCode: 'int?',
    error: 'text?',
    /** In ms, as is `wait`. */
    duration: 'int',
    answer: 'text?',
    address: 'text?',
    at: 'timestamptz',
    wait: 'bigint?',
  },
  takes: { endpoint: 'int', pauseMs: 'bigint?', disableAfter: 'int' },
  gives: { isActive: 'boolean', failureCount: 'int', isDisabled: 'boolean' },
})

async function writeAttempts(
  services: Services,
  endpointId: number,
  attempts: readonly AttemptRecord[],
): Promise<EndpointState> {
  const items = attempts.map(({ id, count, at, result, waitMs }) => ({
    deliveryId: id,
    count,
    success: result.isDelivered,
    statusCode: result.statusCode,
    error: result.error,
    duration: result.durationMs,
    answer: result.answer,
    address: result.address,
    at,
    wait: waitMs,
  }))
  const [row] = await recordAttempts(services.leases.pool, items, {
    endpoint: endpointId,
    pauseMs: attempts.at(-1)?.result.retryAfterMs ?? null,
    disableAfter: services.config.deliveries.disableAfter,
  })
  if (row?.isDisabled) {
    services.log.warn({ endpointId }, 'webhook endpoint disabled after too many failures in a row')
  }
  return { isActive: row?.isActive ?? false, failureCount: row?.failureCount ?? 0 }
}

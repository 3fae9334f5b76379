import type { Services } from '../../context.ts'
import { limits } from '../../shared/limits.ts'
import type { SendResult } from '../../shared/sender.ts'
import { sqlFunctionOfMany } from '../../database/sql-function.ts'

/** An attempt is noted within this time. */
const attemptPendingMs = 50

/** One call, and what came of it. */
export interface AttemptRecord {
  /** Of the delivery. */
  id: bigint
  /** Attempts of its run before this one. */
  count: number
  /** When it began, service time. */
  at: Date
  result: SendResult
  /** Until the next attempt; null where there is none. */
  waitMs: number | null
}

/** How an endpoint stands after what was noted. */
export interface EndpointState {
  isActive: boolean
  failureCount: number
}

/**
 * What came of the calls of one lane, noted in their order. Successes share a statement: a receiver that is
 * quick never waits for our disk. What a process that dies has not noted is sent again.
 */
export interface AttemptLog {
  /**
   * Notes a success soon. Waits only where too much is not noted yet.
   * @throws Error what noting failed with
   */
  add(attempt: AttemptRecord): Promise<void>
  /** Notes all of it, a failure last. @returns how the endpoint stands */
  flush(failure?: AttemptRecord): Promise<EndpointState>
}

export function openAttemptLog(services: Services, endpointId: number): AttemptLog {
  let waiting: AttemptRecord[] = []
  let underWay: Promise<void> = Promise.resolve()
  let failed: { error: unknown } | null = null
  let timer: NodeJS.Timeout | undefined
  let state: EndpointState = { isActive: true, failureCount: 0 }

  /** Never throws: whoever adds or flushes next is told. */
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
    services.log.warn({ endpointId }, 'a webhook failed too often and is disabled')
    services.sequencer.notify()
  }
  return { isActive: row?.isActive ?? false, failureCount: row?.failureCount ?? 0 }
}

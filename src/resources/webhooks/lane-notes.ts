import type { Services } from '../../context.ts'
import { limits } from '../../shared/limits.ts'
import type { SendResult } from '../../shared/sender.ts'
import { sqlFunctionOfMany } from '../../database/sql-function.ts'

/** An attempt is noted within this time. */
const webhookUnnotedMs = 50

/** One call, and what came of it. */
export interface Note {
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
export interface Standing {
  isActive: boolean
  failureCount: number
}

/**
 * What came of the calls of one lane, noted in their order. Successes share a statement: a receiver that is
 * quick never waits for our disk. What a process that dies has not noted is sent again.
 */
export interface LaneNotes {
  /**
   * Notes a success soon. Waits only where too much is not noted yet.
   * @throws Error what noting failed with
   */
  add(note: Note): Promise<void>
  /** Notes all of it, a failure last. @returns how the endpoint stands */
  flush(failure?: Note): Promise<Standing>
}

export function openLaneNotes(services: Services, endpointId: number): LaneNotes {
  let waiting: Note[] = []
  let underWay: Promise<void> = Promise.resolve()
  let failed: { error: unknown } | null = null
  let timer: NodeJS.Timeout | undefined
  let standing: Standing = { isActive: true, failureCount: 0 }

  /** Never throws: whoever adds or flushes next is told. */
  function write(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const notes = waiting
    waiting = []
    if (notes.length === 0) return underWay
    underWay = underWay
      .then(async () => {
        standing = await writeNotes(services, endpointId, notes)
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
    async add(note) {
      waiting.push(note)
      if (waiting.length >= limits.webhookTakeMax) {
        await underWay
        void write()
      } else {
        timer ??= setTimeout(() => void write(), webhookUnnotedMs)
      }
      assertWritten()
    },
    async flush(failure) {
      if (failure) waiting.push(failure)
      await write()
      assertWritten()
      return standing
    },
  }
}

const noteAttempts = sqlFunctionOfMany('note_attempts', {
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

async function writeNotes(services: Services, endpointId: number, notes: readonly Note[]): Promise<Standing> {
  const items = notes.map(({ id, count, at, result, waitMs }) => ({
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
  const [row] = await noteAttempts(services.laneHolds.pool, items, {
    endpoint: endpointId,
    pauseMs: notes.at(-1)?.result.retryAfterMs ?? null,
    disableAfter: services.config.deliveries.disableAfter,
  })
  if (row?.isDisabled) {
    services.log.warn({ endpointId }, 'a webhook failed too often and is disabled')
    services.sequencer.nudge()
  }
  return { isActive: row?.isActive ?? false, failureCount: row?.failureCount ?? 0 }
}

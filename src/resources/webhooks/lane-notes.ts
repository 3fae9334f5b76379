import type { Services } from '../../context.ts'
import { limits } from '../../shared/limits.ts'
import type { SendResult } from '../../shared/sender.ts'

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

async function writeNotes(services: Services, endpointId: number, notes: readonly Note[]): Promise<Standing> {
  const results = notes.map(({ result }) => result)
  const { rows } = await services.laneHolds.pool.query<Standing & { isDisabled: boolean }>({
    name: 'note_attempts',
    text: `SELECT is_active AS "isActive", failure_count AS "failureCount", is_disabled AS "isDisabled"
      FROM note_attempts($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
    values: [
      endpointId,
      notes.map(({ id }) => id),
      notes.map(({ count }) => count),
      results.map(({ isDelivered }) => isDelivered),
      results.map(({ statusCode }) => statusCode),
      results.map(({ error }) => error),
      results.map(({ durationMs }) => durationMs),
      results.map(({ answer }) => answer),
      results.map(({ address }) => address),
      notes.map(({ at }) => at),
      notes.map(({ waitMs }) => waitMs),
      results.at(-1)?.retryAfterMs ?? null,
      services.config.deliveries.disableAfter,
    ],
  })
  const [row] = rows
  if (row?.isDisabled) {
    services.log.warn({ endpointId }, 'a webhook failed too often and is disabled')
    services.sequencer.nudge()
  }
  return { isActive: row?.isActive ?? false, failureCount: row?.failureCount ?? 0 }
}

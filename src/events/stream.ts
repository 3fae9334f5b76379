import { limits } from '../shared/limits.ts'
import type { LogEvent } from './catalogue.ts'
import { type EventFilter, isWanted } from './filter.ts'

/** The number of newest events of a merchant that a stream keeps in memory. */
export const eventRingMax = 1_000

/** The newest part of one merchant's log, kept in memory for all its subscribers. */
export interface Stream {
  /** Reads the new events up to `head`, once, and notifies the subscribers. */
  advance(head: bigint): Promise<void>
  /**
   * Returns the next events after a position, at most `limits.eventPageMax`; null where they are not in
   * memory: then read the table.
   */
  since(position: bigint): readonly LogEvent[] | null
  /** Returns a counter of the changes; pass it to `changed` to wait for the next change. */
  version(): number
  /**
   * Resolves when the version is no longer `version`, or when `signal` aborts. With a filter it resolves for
   * wanted events, and for others once a second at most: so a stream of few events costs little.
   */
  changed(version: number, signal: AbortSignal, filter?: EventFilter): Promise<void>
}

/** The longest time for which events that a reader does not want leave it behind. */
const unwantedMs = 1_000

/** A reader that has read all events. */
interface Waiter {
  notify: () => void
  filter: EventFilter | undefined
  /** When it began to wait. */
  begun: number
}

function isDue({ filter, begun }: Waiter, added: readonly LogEvent[], now: number): boolean {
  return !filter || now - begun >= unwantedMs || added.some((event) => isWanted(filter, event))
}

export function createStream(readPage: (after: bigint) => Promise<LogEvent[]>): Stream {
  let ring: LogEvent[] = []
  /** The last known position; null before the first call of `advance`. */
  let tail: bigint | null = null
  let version = 0
  let reading: Promise<void> | null = null
  const waiting = new Set<Waiter>()

  async function catchUp(head: bigint): Promise<void> {
    // The first call only records where the log ends: a reader that wants earlier events reads them from the
    // table.
    const isFirst = tail === null
    const added: LogEvent[] = []
    if (tail === null) tail = head
    while (tail < head) {
      const page = await readPage(tail)
      const last = page.at(-1)
      if (!last) break
      ring = [...ring, ...page].slice(-eventRingMax)
      added.push(...page)
      tail = last.position
    }
    version += 1
    const now = performance.now()
    for (const waiter of Array.from(waiting)) if (isFirst || isDue(waiter, added, now)) waiter.notify()
  }

  return {
    async advance(head) {
      while (reading) await reading
      if (tail !== null && head <= tail) return
      reading = catchUp(head).finally(() => {
        reading = null
      })
      await reading
    },
    since(position) {
      if (tail === null) return null
      if (position >= tail) return []
      const first = ring[0]
      if (!first || first.position > position + 1n) return null
      // Positions have no gaps except after a restore; after such a gap an event stands earlier in the ring
      // than its position suggests.
      let from = Math.min(ring.length, Number(position - first.position) + 1)
      while (from > 0 && (ring[from - 1]?.position ?? 0n) > position) from -= 1
      return ring.slice(from, from + limits.eventPageMax)
    },
    version: () => version,
    changed(seen, signal, filter) {
      if (version !== seen || signal.aborted) return Promise.resolve()
      return new Promise((resolve) => {
        const notify = () => {
          waiting.delete(waiter)
          signal.removeEventListener('abort', notify)
          resolve()
        }
        const waiter: Waiter = { notify, filter, begun: performance.now() }
        waiting.add(waiter)
        signal.addEventListener('abort', notify, { once: true })
      })
    },
  }
}

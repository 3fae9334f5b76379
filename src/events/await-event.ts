import type { LogEvent } from './catalogue.ts'
import type { Feed } from './feed.ts'
import { type EventFilter, isWanted } from './filter.ts'

/**
 * Waits for an event of a merchant's log, from any node. To miss no event, first take `after` from
 * `feed.start`, then read the record that the event would change, and only then wait.
 * @param until ends the wait
 * @returns null where the event did not come in time
 */
export async function awaitEvent(
  feed: Feed,
  merchantId: number,
  after: bigint,
  filter: EventFilter,
  until: AbortSignal,
): Promise<LogEvent | null> {
  for await (const event of feed.subscribe({ merchantId, after, signal: until, filter })) {
    if (isWanted(filter, event)) return event
  }
  return null
}

import type { LogEvent } from './catalogue.ts'
import type { Feed } from './feed.ts'

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
  wanted: (event: LogEvent) => boolean,
  until: AbortSignal,
): Promise<LogEvent | null> {
  for await (const event of feed.subscribe({ merchantId, after, signal: until })) {
    if (wanted(event)) return event
  }
  return null
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { currentMerchant } from '../database/merchant-pool.ts'
import { DomainError } from '../shared/errors.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import type { Log } from '../telemetry/log.ts'
import type { LogEvent } from './catalogue.ts'
import { type EventFilter, isWanted } from './filter.ts'
import { readPage, readWanted } from './read-page.ts'
import { type Stream, createStream } from './stream.ts'

/** The pause after the first failed read of the log. */
export const eventRetryMs = 100

/** The longest pause after failed reads of the log; the pause doubles each time. */
const eventRetryMaxMs = 2_000

export interface Subscription {
  merchantId: number
  /** The last position that the reader has, from `start`. */
  after: bigint
  signal: AbortSignal
  /** The events that the reader wants; by default all. */
  filter?: EventFilter
}

/**
 * The live side of the event log. Replay and live reading are one loop over the same rows, so no event is
 * lost or read twice.
 */
export interface Feed {
  /**
   * Returns the position after which a reader begins: the reader's cursor, or the newest event (`head`) for a
   * reader without a cursor.
   * @throws DomainError INVALID_INPUT where the cursor lies ahead of the log, or where a restore lost the
   * event at the cursor
   */
  start(merchantId: number, cursor: bigint | null): Promise<{ after: bigint; head: bigint }>
  /**
   * Yields every event after a position, in order, until `signal` aborts; an outage of the database does not
   * end it. The reader pulls: for a slow reader, events wait in the log, not in memory. With a filter it
   * yields the wanted events, and now and then one that is not wanted: it tells how far the log was read.
   */
  subscribe(subscription: Subscription): AsyncGenerator<LogEvent, void, void>
  /**
   * Says that events of these merchants (ids with commas; `*`: any merchant) were committed. If this call is
   * missed, the next poll finds the events.
   */
  notify(merchants: string): void
  /**
   * Counts the numbered events of a merchant. The log is dense but for the gaps that restores left, so the
   * positions of its two ends give the count without reading the events.
   */
  count(merchantId: number): Promise<number>
  close(): void
}

/**
 * Opens the feed. All subscribers of a merchant share one buffer with the newest events. The feed reads the
 * events of all merchants from one pool and one memory, where row-level security does not separate merchants:
 * so the feed itself checks that a log is read on behalf of its own merchant.
 */
export function openFeed(pool: Pool, log: Log): Feed {
  const streams = new Map<number, { stream: Stream; readers: number }>()

  /**
   * Reads a page, and retries with growing pauses while the database does not answer, so that an outage ends
   * no reader.
   * @returns an empty page once the reader has left
   */
  async function readPatiently(
    { merchantId, signal, filter }: Subscription,
    after: bigint,
  ): Promise<LogEvent[]> {
    for (let pauseMs: number = eventRetryMs; ; pauseMs = Math.min(pauseMs * 2, eventRetryMaxMs)) {
      try {
        return await (filter
          ? readWanted(pool, merchantId, after, filter)
          : readPage(pool, merchantId, after))
      } catch (error) {
        if (pauseMs === eventRetryMs) log.warn({ err: error, merchantId }, notRead)
        await sleep(pauseMs, undefined, { signal }).catch(() => {})
        if (signal.aborted) return []
      }
    }
  }

  async function lastPositions(merchantIds: readonly number[]): Promise<Map<number, bigint>> {
    const { rows } = await pool.query<{ merchant_id: number; position: bigint }>({
      name: 'read_positions',
      text: 'SELECT merchant_id, position FROM event_log_position WHERE merchant_id = ANY ($1)',
      values: [merchantIds],
    })
    return new Map(rows.map((row) => [row.merchant_id, row.position]))
  }

  /** @throws DomainError INVALID_INPUT where a restore of the database lost the event at the cursor */
  async function assertOnRecord(merchantId: number, cursor: bigint): Promise<void> {
    const { rows } = await pool.query<{ after: bigint; last: bigint }>({
      name: 'read_event_gap',
      text: `SELECT after_position AS after, last_position AS last FROM event_gap
             WHERE merchant_id = $1 AND after_position < $2 AND last_position > $2`,
      values: [merchantId, cursor],
    })
    const [gap] = rows
    if (gap) throw lostByRestore(gap.after, gap.last)
  }

  async function countEvents(merchantId: number): Promise<number> {
    const { rows } = await pool.query<{ n: bigint }>({
      name: 'count_events',
      text: `SELECT last.position - oldest.position + 1 - (
               SELECT coalesce(sum(last_position - after_position), 0)::bigint FROM event_gap
               WHERE merchant_id = $1 AND after_position >= oldest.position) AS n
             FROM (SELECT position FROM event_log_position WHERE merchant_id = $1) AS last, LATERAL (
               SELECT position FROM event WHERE merchant_id = $1 AND position > 0 ORDER BY position LIMIT 1
             ) AS oldest`,
      values: [merchantId],
    })
    return Number(rows[0]?.n ?? 0n)
  }

  async function refresh(merchantIds: readonly number[]): Promise<void> {
    if (merchantIds.length === 0) return
    try {
      const positions = await lastPositions(merchantIds)
      await Promise.all(
        merchantIds.map(
          (id) => streams.get(id)?.stream.advance(positions.get(id) ?? 0n) ?? Promise.resolve(),
        ),
      )
    } catch (error) {
      log.warn({ err: error }, notRead)
    }
  }

  function join(merchantId: number): Stream {
    const entry = streams.get(merchantId) ?? {
      stream: createStream((after) => readPage(pool, merchantId, after)),
      readers: 0,
    }
    entry.readers += 1
    streams.set(merchantId, entry)
    return entry.stream
  }

  function leave(merchantId: number): void {
    const entry = streams.get(merchantId)
    if (!entry) return
    entry.readers -= 1
    if (entry.readers === 0) streams.delete(merchantId)
  }

  async function* read(subscription: Subscription): AsyncGenerator<LogEvent, void, void> {
    const { merchantId, after, signal, filter } = subscription
    const stream = join(merchantId)
    try {
      let cursor = after
      while (!signal.aborted) {
        // The version is taken before the read: an event that arrives between the read and the wait ends the
        // wait at once.
        const version = stream.version()
        const page = stream.since(cursor) ?? (await readPatiently(subscription, cursor))
        const last = page.at(-1)
        for (const event of page) {
          if (filter && event !== last && !isWanted(filter, event)) continue
          yield event
          if (signal.aborted) return
          cursor = event.position
        }
        if (page.length === 0) await stream.changed(version, signal, filter)
      }
    } finally {
      leave(merchantId)
    }
  }

  const poll = setInterval(() => void refresh([...streams.keys()]), limits.eventPollMs).unref()

  return {
    count(merchantId) {
      assertOwn(merchantId)
      return countEvents(merchantId)
    },
    async start(merchantId, cursor) {
      assertOwn(merchantId)
      const head = (await lastPositions([merchantId])).get(merchantId) ?? 0n
      if (cursor !== null && (cursor < 0n || cursor > head)) throw aheadOfLog(head)
      if (cursor !== null) await assertOnRecord(merchantId, cursor)
      return { after: cursor ?? head, head }
    },
    subscribe(subscription) {
      assertOwn(subscription.merchantId)
      return read(subscription)
    },
    notify(merchants) {
      const named = merchants === '*' ? [...streams.keys()] : merchants.split(',').map(Number)
      void refresh(named.filter((id) => streams.has(id)))
    },
    close: () => clearInterval(poll),
  }
}

const notRead = 'events not read; trying again'

function assertOwn(merchantId: number): void {
  invariant(currentMerchant() === merchantId, 'a log of events is read on behalf of its own merchant')
}

function lostByRestore(after: bigint, last: bigint): DomainError {
  const words = `The service was restored from a backup: events ${after + 1n} to ${last} are lost.`
  return new DomainError('INVALID_INPUT', `${words} Continue from the cursor ${after}.`, {
    problems: [
      { field: 'after', message: `is the cursor of a lost event: continue from the cursor ${after}` },
    ],
  })
}

function aheadOfLog(head: bigint): DomainError {
  return new DomainError('INVALID_INPUT', `The log ends at ${head}: this cursor does not exist yet.`, {
    problems: [{ field: 'after', message: `must be a cursor between 0 and ${head}` }],
  })
}

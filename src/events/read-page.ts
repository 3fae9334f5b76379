import type { Pool } from 'pg'
import { limits } from '../shared/limits.ts'
import type { LogEvent } from './catalogue.ts'
import { type EventFilter, originOf } from './filter.ts'

/** The most events that one statement passes over for a reader who wants few of them. */
export const eventSpanMax = 10_000

const columns = 'id, position, type, data, created_at AS "occurredAt"'

/** Reads the events of a merchant after a position, in order, at most `limits.eventPageMax`. */
export async function readPage(pool: Pool, merchantId: number, after: bigint): Promise<LogEvent[]> {
  const { rows } = await pool.query<LogEvent>({
    name: 'read_events',
    text: `SELECT ${columns} FROM event
           WHERE merchant_id = $1 AND position > $2 ORDER BY position LIMIT $3`,
    values: [merchantId, after, limits.eventPageMax],
  })
  return rows
}

/**
 * Reads the next wanted events of a merchant after a position, in order, at most `limits.eventPageMax`. If
 * the page ends at an event that is not wanted, this event comes too: it tells up to where the log was read.
 * @returns an empty page at the end of the log only
 */
export async function readWanted(
  pool: Pool,
  merchantId: number,
  after: bigint,
  filter: EventFilter,
): Promise<LogEvent[]> {
  const origin = originOf(filter)
  const common = [merchantId, after, limits.eventPageMax, [...filter.types], filter.data]
  const { rows } = await pool.query<LogEvent>(
    origin
      ? { name: 'read_events_about', text: aboutText, values: [...common, origin] }
      : { name: 'read_events_wanted', text: wantedText, values: [...common, eventSpanMax] },
  )
  return rows
}

const isWantedText = `(type = ANY ($4::text[]) AND NOT EXISTS (
  SELECT FROM jsonb_each($5::jsonb) AS field WHERE (field.value ? (data->>field.key)) IS NOT TRUE))`

/**
 * Finds the events about one thing; after them, the newest event of the log. `OFFSET 0` has them found by the
 * index of origins: PostgreSQL might else walk through the whole log in the order of its positions.
 */
const aboutText = `
  SELECT * FROM (
    SELECT ${columns} FROM (SELECT * FROM event WHERE event_origin(data) = $6 OFFSET 0) AS own
    WHERE merchant_id = $1 AND position > $2 AND ${isWantedText}
    UNION
    (SELECT ${columns} FROM event WHERE merchant_id = $1 AND position > $2 ORDER BY position DESC LIMIT 1)
  ) AS found ORDER BY position LIMIT $3`

/** Passes over the next events, and reads the wanted ones of them and the last one. */
const wantedText = `
  WITH span AS MATERIALIZED (
    SELECT max(position) AS last FROM (
      SELECT position FROM event WHERE merchant_id = $1 AND position > $2 ORDER BY position LIMIT $6
    ) AS passed
  )
  SELECT ${columns} FROM event
  WHERE merchant_id = $1 AND position > $2 AND position <= (SELECT last FROM span)
    AND (position = (SELECT last FROM span) OR ${isWantedText})
  ORDER BY position LIMIT $3`

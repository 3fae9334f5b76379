import type { Pool } from 'pg'
import { limits } from '../shared/limits.ts'
import type { LogEvent } from './catalogue.ts'
import { type EventFilter, originOf } from './filter.ts'

/** The most positions of the log that one statement passes over for a reader who wants few events. */
export const eventSpanMax = 10_000

/** The most events about one object in a page: each page reads all events about the object. */
const aboutPageMax = 1_000

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
 * Reads the next wanted events of a merchant after a position, in order. If the page ends at an event that is
 * not wanted, this event comes too: it tells up to where the log was read.
 * @returns an empty page at the end of the log only
 */
export async function readWanted(
  pool: Pool,
  merchantId: number,
  after: bigint,
  filter: EventFilter,
): Promise<LogEvent[]> {
  const origin = originOf(filter)
  const wanted = [merchantId, after, [...filter.types], filter.data]
  const { rows } = await pool.query<LogEvent>(
    origin
      ? { name: 'read_events_about', text: aboutText, values: [...wanted, aboutPageMax, origin] }
      : {
          name: 'read_events_wanted',
          text: wantedText,
          values: [...wanted, limits.eventPageMax, eventSpanMax],
        },
  )
  return rows
}

const isWantedText = `(type = ANY ($3::text[]) AND NOT EXISTS (
  SELECT FROM jsonb_each($4::jsonb) AS field WHERE (field.value ? (data->>field.key)) IS NOT TRUE))`

/**
 * Finds the events about one object; after all of them, the newest event of the log. `OFFSET 0` has them
 * found by the index of origins: PostgreSQL might else walk through the whole log in the order of positions.
 */
const aboutText = `
  WITH own AS MATERIALIZED (
    SELECT ${columns} FROM (SELECT * FROM event WHERE event_origin(data) = $6 OFFSET 0) AS found
    WHERE merchant_id = $1 AND position > $2 AND ${isWantedText} ORDER BY position LIMIT $5
  ), newest AS (
    SELECT ${columns} FROM event WHERE merchant_id = $1 AND position > $2 ORDER BY position DESC LIMIT 1
  )
  SELECT * FROM own
  UNION ALL
  SELECT * FROM newest WHERE (SELECT count(*) FROM own) < $5
    AND position > coalesce((SELECT max(own.position) FROM own), $2)
  ORDER BY position`

/**
 * Passes over the next positions, and reads the wanted events there and the last event. Where a restore left
 * a gap of this length, that is the first event after the gap.
 */
const wantedText = `
  WITH span AS MATERIALIZED (
    SELECT coalesce(
      (SELECT max(position) FROM event WHERE merchant_id = $1 AND position > $2 AND position <= $2 + $6),
      (SELECT min(position) FROM event WHERE merchant_id = $1 AND position > $2)) AS last
  )
  SELECT ${columns} FROM event
  WHERE merchant_id = $1 AND position > $2 AND position <= (SELECT last FROM span)
    AND (position = (SELECT last FROM span) OR ${isWantedText})
  ORDER BY position LIMIT $5`

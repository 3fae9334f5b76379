import type { Pool } from 'pg'
import { z } from 'zod'
import type { DomainError } from './errors.ts'
import { invalidInput } from './input.ts'

const words = 'must be the name of a time zone, such as Africa/Bamako'
/** The refusal of a time zone in which a day does not begin at a whole hour in UTC. */
export const wholeHours = 'must be a time zone that differs from UTC by whole hours'

const form = /^(?:UTC|[A-Za-z_]+(?:\/[A-Za-z0-9_+-]+){1,2})$/
const nameLengthMax = 64

/**
 * The schema of a time zone: `UTC`, or a name of the IANA database with its area. Offsets and abbreviations
 * are refused: PostgreSQL reads the sign of an offset the other way round.
 */
export const timeZoneName = z
  .string(words)
  .refine((name) => name.length <= nameLengthMax && form.test(name) && isKnown(name), words)

function isKnown(timeZone: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** The state of PostgreSQL's error for a name that it does not know. */
const unknownName = '22023'

/** Makes the refusal of a time zone. */
export function zoneRefused(message: string): DomainError {
  return invalidInput([{ field: 'timeZone', message }])
}

/**
 * Does work with a time zone, and refuses one that only Node knows: the database's list may be older.
 * @throws DomainError INVALID_INPUT
 */
export async function refusingZone<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if ((error as { code?: string }).code !== unknownName) throw error
    throw zoneRefused(words)
  }
}

/**
 * Checks that the database knows a time zone, and that it differs from UTC by whole hours in each month of
 * this year: the figures of payments are kept by the hour.
 * @throws DomainError INVALID_INPUT
 */
export async function checkTimeZone(pool: Pool, timeZone: string): Promise<void> {
  const text = `SELECT bool_and(date_trunc('hour', year + month, $1) = year + month) AS "isByHours"
    FROM date_trunc('year', now(), 'UTC') AS year, (SELECT n * interval '1 month' AS month
      FROM generate_series(0, 11) AS n) AS months`
  const { rows } = await refusingZone(() =>
    pool.query<{ isByHours: boolean }>({ name: 'time_zone', text, values: [timeZone] }),
  )
  if (!rows[0]?.isByHours) throw zoneRefused(wholeHours)
}

import type { Pool } from 'pg'
import { z } from 'zod'
import { invalidInput } from './input.ts'

const words = 'must be the name of a time zone, such as Africa/Bamako'

/**
 * The schema of a time zone: `UTC`, or a name of the IANA database with its area. Offsets and abbreviations
 * are refused: PostgreSQL reads the sign of an offset the other way round.
 */
export const timeZoneName = z
  .string(words)
  .max(64, words)
  .regex(/^(?:UTC|[A-Za-z_]+(?:\/[A-Za-z0-9_+-]+){1,2})$/, words)
  .refine(isKnown, words)

function isKnown(timeZone: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** The state of PostgreSQL's error for a name that it does not know. */
const unknownName = '22023'

/**
 * Does work with a time zone, and refuses one that only Node knows: the database's list may be older.
 * @throws DomainError INVALID_INPUT
 */
export async function refusingZone<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if ((error as { code?: string }).code !== unknownName) throw error
    throw invalidInput([{ field: 'timeZone', message: words }])
  }
}

/** Checks that the database knows a time zone. @throws DomainError INVALID_INPUT */
export async function checkTimeZone(pool: Pool, timeZone: string): Promise<void> {
  const text = 'SELECT now() AT TIME ZONE $1'
  await refusingZone(() => pool.query({ name: 'time_zone', text, values: [timeZone] }))
}

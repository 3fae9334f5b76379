import { z } from 'zod'

// Every time that a caller gives is read here, over REST and over GraphQL, so that each time that is stored
// can be read back by every list, export, event and page.

/** The years 1 to 9999 in UTC: ISO 8601 writes them with four digits, and PostgreSQL has them. */
const earliestMs = Date.parse('0001-01-01T00:00:00.000Z')
const latestMs = Date.parse('9999-12-31T23:59:59.999Z')

/** Whether a time is in the years that every answer can show. */
export function isInYears(at: Date): boolean {
  return at.getTime() >= earliestMs && at.getTime() <= latestMs
}

/** The meaning of a text, in milliseconds since 1970: one moment, or, of a date, all moments of its day. */
interface Meaning {
  first: number
  last: number
  /** The first moment after a day; of a time, the time itself. */
  end: number
}

const dayMs = 24 * 60 * 60 * 1_000

const form =
  /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?=Z|[+-]))?(?:Z|([+-])(\d\d):(\d\d))?$/i

/** Matches a time whose `+` was not encoded in an address: a query string has a space for it. */
const plusLost = /^\d{4}-\d\d-\d\dT[\d:.]+ \d\d:\d\d$/i

const words = {
  form: 'must be an ISO 8601 time with its zone, such as 2026-01-31T10:00:00Z, or a date, such as 2026-01-31',
  plus: 'must be an ISO 8601 time: in an address, write the + of its offset as %2B',
  years: 'must be in the years 1 to 9999, in UTC',
}

/**
 * Reads a text in ISO 8601. A date may have a zone, else it is a day in UTC. Digits after the milliseconds
 * are cut. 24:00 and a leap second (60, only at the end of a day in UTC) are the first moment of the next
 * day.
 * @returns the meaning of the text; a text that says what is wrong with it
 */
function readTime(text: string): Meaning | string {
  const [all, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', ...zone] =
    form.exec(text) ?? []
  if (all === undefined) return plusLost.test(text) ? words.plus : words.form
  const [sign, hoursAhead = '00', minutesAhead = '00'] = zone
  const midnight = new Date(0)
  midnight.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  const isDay = midnight.getUTCMonth() + 1 === Number(month) && midnight.getUTCDate() === Number(day)
  const isEndOfDay = /^24:00:00\.0*$/.test(`${hour}:${minute}:${second}.${fraction}`)
  const fits = (hour < '24' || isEndOfDay) && minute < '60' && second <= '60'
  if (!isDay || !fits || hoursAhead > '23' || minutesAhead > '59') return words.form
  const ofDay = (Number(hour) * 60 + Number(minute)) * 60 + Number(second)
  const ahead = (Number(hoursAhead) * 60 + Number(minutesAhead)) * (sign === '-' ? -60 : 60)
  const seconds = midnight.getTime() / 1_000 + ofDay - ahead
  if (second === '60' && (seconds * 1_000) % dayMs !== 0) return words.form
  const first = seconds * 1_000 + Number(fraction.slice(0, 3).padEnd(3, '0'))
  if (!isInYears(new Date(first))) return words.years
  if (/T/i.test(text)) return { first, last: first, end: first }
  return { first, last: Math.min(first + dayMs - 1, latestMs), end: Math.min(first + dayMs, latestMs) }
}

/** Returns what is wrong with the text of a time; null where it can be read. */
export function timeProblem(text: string): string | null {
  const read = readTime(text)
  return typeof read === 'string' ? read : null
}

/** Makes the schema of a time, from its text or from a `Date` that a schema of this file has made before. */
function timeBy(moment: keyof Meaning) {
  return z
    .union([z.date(), z.string()], {
      error: ({ input }) => (input === undefined || input === null ? 'is required' : words.form),
    })
    .transform((value, ctx): Date => {
      const read = typeof value === 'string' ? readTime(value) : isInYears(value) ? value : words.years
      if (read instanceof Date) return read
      if (typeof read !== 'string') return new Date(read[moment])
      ctx.addIssue({ code: 'custom', message: read })
      return z.NEVER
    })
}

/** The schema of a time, or of a date, which means the first moment of its day. */
export const time = timeBy('first')

/** The schema of the end of a period that the period includes: a date means the last moment of its day. */
export const timeTo = timeBy('last')

/** The schema of the end of a period that leaves it out: a date means the first moment after its day. */
export const timeUntil = timeBy('end')

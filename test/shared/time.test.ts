import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isInYears, time, timeProblem, timeTo, timeUntil } from '../../src/shared/time.ts'
import { seed } from '../kit/seeds.ts'

const readBy = (schema: typeof time, value: unknown) => {
  const { data, error } = schema.safeParse(value)
  return data?.toISOString() ?? error?.issues[0]?.message
}

test.each([
  ['2026-01-31T10:00:00Z', '2026-01-31T10:00:00.000Z'],
  ['2026-01-31T10:00Z', '2026-01-31T10:00:00.000Z'],
  ['2026-01-31t10:00:00z', '2026-01-31T10:00:00.000Z'],
  ['2026-01-31T10:00:00.123+01:00', '2026-01-31T09:00:00.123Z'],
  ['2026-01-31T10:00:00-23:59', '2026-02-01T09:59:00.000Z'],
  ['2026-01-31T10:00:00-00:00', '2026-01-31T10:00:00.000Z'],
  ['2026-01-31T10:00:00.1Z', '2026-01-31T10:00:00.100Z'],
  ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
  // Digits after the milliseconds are cut.
  ['2026-01-31T10:00:00.1239999Z', '2026-01-31T10:00:00.123Z'],
  ['9999-12-31T23:59:59.9999999Z', '9999-12-31T23:59:59.999Z'],
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
  ['0000-12-31T23:00:00-01:00', '0001-01-01T00:00:00.000Z'],
  ['0099-06-01T00:00:00Z', '0099-06-01T00:00:00.000Z'],
  // The end of a day has two other names.
  ['2026-01-31T24:00:00Z', '2026-02-01T00:00:00.000Z'],
  ['2026-01-31T24:00:00.000+01:00', '2026-01-31T23:00:00.000Z'],
  ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
  ['2017-01-01T00:59:60.5+01:00', '2017-01-01T00:00:00.500Z'],
])('the time %s is %s, as a start and as an end', (text, iso) => {
  for (const schema of [time, timeTo, timeUntil]) expect(readBy(schema, text)).toBe(iso)
})

test.each([
  ['2026-01-31', '2026-01-31T00:00:00.000Z', '2026-01-31T23:59:59.999Z', '2026-02-01T00:00:00.000Z'],
  ['2026-01-31Z', '2026-01-31T00:00:00.000Z', '2026-01-31T23:59:59.999Z', '2026-02-01T00:00:00.000Z'],
  ['2026-01-31+01:00', '2026-01-30T23:00:00.000Z', '2026-01-31T22:59:59.999Z', '2026-01-31T23:00:00.000Z'],
  ['9999-12-31', '9999-12-31T00:00:00.000Z', '9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ['9999-12-31-01:00', '9999-12-31T01:00:00.000Z', '9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
])('the date %s starts at %s, includes %s and ends before %s', (text, first, last, end) => {
  expect([time, timeTo, timeUntil].map((schema) => readBy(schema, text))).toEqual([first, last, end])
})

test.each(['0001-01-01T00:00:00+01:00', '0000-01-01T00:00:00Z', '0000-01-01', '0001-01-01+01:00'])(
  '%s is before the year 1 in UTC',
  (text) => expect(readBy(time, text)).toBe('must be in the years 1 to 9999, in UTC'),
)
test.each(['9999-12-31T23:59:60Z', '9999-12-31T24:00:00Z', '9999-12-31T23:00:00-01:00'])(
  '%s is after the year 9999 in UTC',
  (text) => expect(readBy(timeTo, text)).toBe('must be in the years 1 to 9999, in UTC'),
)

test.each<unknown>([
  '2026-01-31T10:00:00',
  '2026-01-31T10Z',
  '2026-01-31T',
  '2026-02-29',
  '2026-00-10',
  '2026-01-00',
  '2026-13-01T00:00:00Z',
  '2026-01-31T25:00:00Z',
  '2026-01-31T24:00:01Z',
  '2026-01-31T24:00:00.0001Z',
  '2026-01-31T10:60:00Z',
  '2026-01-31T10:00:60Z',
  '2026-01-31T23:59:61Z',
  '2026-01-31T10:00:00+24:00',
  '2026-01-31T10:00:00+01:60',
  '2026-01-31T10:00:00+0100',
  '+002026-01-31T10:00:00Z',
  '10000-01-01T00:00:00Z',
  '٢٠٢٦-01-31',
  '2026-01-31T10:00:00Z\n',
  '31/01/2026',
  '',
  'now',
  '1769853600',
  0,
  true,
  new Date(Number.NaN),
])('%j is no time', (value) => expect(readBy(time, value)).toMatch(/^must be an ISO 8601 time with its zone/))

test('the message of a lost plus says how to write it; a missing time is required', () => {
  const lost = '2026-01-31T10:00:00 01:00'
  expect(readBy(time, lost)).toBe('must be an ISO 8601 time: in an address, write the + of its offset as %2B')
  expect([readBy(time, undefined), readBy(time, null)]).toEqual(['is required', 'is required'])
})

test('a Date stays as it is, and is refused outside of the years', () => {
  for (const schema of [time, timeTo, timeUntil])
    expect(readBy(schema, new Date(1))).toBe('1970-01-01T00:00:00.001Z')
  expect(readBy(time, new Date(Date.UTC(10_000, 0)))).toBe('must be in the years 1 to 9999, in UTC')
})

test('every text is refused, or is a time that ISO 8601 writes with four digits for the year', () => {
  const number = (max: number, length = 2) =>
    fc.integer({ min: 0, max }).map((value) => String(value).padStart(length, '0'))
  const parts = fc.tuple(
    fc.oneof(fc.constantFrom('0000', '0001', '9999'), number(9_999, 4)),
    number(13),
    number(32),
    fc.constantFrom('T', 't', ' ', ''),
    number(25),
    number(61),
    number(61),
    fc.constantFrom('', '.9', '.999', '.9999999'),
    fc.constantFrom('Z', '', '+00:00', '+23:59', '-23:59', '+24:00'),
  )
  fc.assert(
    fc.property(parts, ([year, month, day, separator, hour, minute, second, fraction, zone]) => {
      const text = `${year}-${month}-${day}${separator}${hour}:${minute}:${second}${fraction}${zone}`
      const read = time.safeParse(text)
      expect(read.success).toBe(timeProblem(text) === null)
      if (!read.success) return
      expect(isInYears(read.data)).toBe(true)
      expect(read.data.toISOString()).toMatch(/^\d{4}-/)
      // Where JavaScript reads the text too, it is the same moment.
      const native = Date.parse(text)
      expect(read.data.getTime()).toBe(Number.isNaN(native) ? read.data.getTime() : native)
    }),
    { seed, numRuns: 5_000 },
  )
})

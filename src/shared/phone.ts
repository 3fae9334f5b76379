import metadata from 'libphonenumber-js/mobile/metadata'
import { invariant } from './invariant.ts'

/**
 * Matches the mobile numbers of Mali by the table of `libphonenumber-js`. Only its table is loaded: the
 * general parser takes as much processor time as a payment, and its 92 modules cost 25 ms and 2 MB at every
 * start.
 */
const mobile = new RegExp(`^(?:${mobilePattern()})$`)

/**
 * Removes the marks that a telephone adds to a number that a person copies from contacts or messages: the
 * direction of the text, zero-width spaces, the byte order mark and soft hyphens. They have no meaning in a
 * number, and a person cannot see or remove them.
 */
export function withoutMarks(text: string): string {
  return text.replaceAll(/[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g, '')
}

/**
 * Reads a Mali mobile number in any usual writing (`70 00 00 01`, `+223...`, `00223...`, `223...`).
 * Any Mali mobile number passes for any operator, because customers keep their number when they change it.
 * @returns E.164 (`+22370000001`), or null when it is no Mali mobile number
 */
export function parsePhone(text: string): string | null {
  const typed = withoutMarks(text)
  if (typed.length > phoneLengthMax) return null
  const [, number = ''] = /^(?:(?:\+|00)?223)?(\d{8})$/.exec(typed.replaceAll(between, '')) ?? []
  return mobile.test(number) ? `+223${number}` : null
}

/**
 * Reads the number at which a person is called or written to: a mobile or fixed number of Mali in any usual
 * writing, or a number of another country with `+` or `00` before it.
 * @returns E.164, or null
 */
export function parseContactPhone(text: string): string | null {
  const typed = withoutMarks(text)
  if (typed.length > phoneLengthMax) return null
  const number = typed.replaceAll(between, '')
  const [, own] = /^(?:(?:\+|00)?223)?([2-9]\d{7})$/.exec(number) ?? []
  if (own !== undefined) return `+223${own}`
  const [, foreign] = /^(?:\+|00)((?!223)[1-9]\d{6,14})$/.exec(number) ?? []
  return foreign === undefined ? null : `+${foreign}`
}

/** The most characters of a number as it is typed, without the invisible marks. */
export const phoneLengthMax = 32

/** Matches what people write between digits; word processors and Asian keyboards make the long dashes. */
const between = /[\s().\-\u2010-\u2015\u2212\ufe58\ufe63\uff0d]/g

/** Returns the pattern: a country's row has its patterns by type at index 11; mobile is the second type. */
function mobilePattern(): string {
  const pattern: unknown = metadata.countries.ML?.[11]?.[1]?.[0]
  invariant(typeof pattern === 'string', 'libphonenumber has a pattern for the mobile numbers of Mali')
  return pattern
}

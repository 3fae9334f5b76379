import metadata from 'libphonenumber-js/mobile/metadata'
import { invariant } from './invariant.ts'

/**
 * Matches the mobile numbers of Mali by the table of `libphonenumber-js`. Only its table is loaded: the
 * general parser takes as much processor time as a payment, and its 92 modules cost 25 ms and 2 MB at every
 * start.
 */
const mobile = new RegExp(`^(?:${mobilePattern()})$`)

/**
 * Reads a Mali mobile number in any usual writing (`70 00 00 01`, `+223...`, `00223...`, `223...`).
 * Any Mali mobile number passes for any operator, because customers keep their number when they change it.
 * @returns E.164 (`+22370000001`), or null when it is no Mali mobile number
 */
export function parsePhone(text: string): string | null {
  if (text.length > 32) return null
  const [, number = ''] = /^(?:(?:\+|00)?223)?(\d{8})$/.exec(text.replace(/[\s().-]/g, '')) ?? []
  return mobile.test(number) ? `+223${number}` : null
}

/** Returns the pattern: a country's row has its patterns by type at index 11; mobile is the second type. */
function mobilePattern(): string {
  const pattern: unknown = metadata.countries.ML?.[11]?.[1]?.[0]
  invariant(typeof pattern === 'string', 'libphonenumber has a pattern for the mobile numbers of Mali')
  return pattern
}

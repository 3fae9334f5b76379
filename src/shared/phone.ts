import { Metadata } from 'libphonenumber-js/mobile'

/** What the types of the library leave out of a numbering plan. */
interface Patterns {
  type(name: 'MOBILE'): { pattern(): string }
}

/** The mobile numbers of Mali as the library knows them; its general parser costs as much as a payment. */
const mobile = new RegExp(`^(?:${planOf('ML').type('MOBILE').pattern()})$`)

/**
 * Reads a Mali mobile number in any usual writing (`70 00 00 01`, `+223...`, `00223...`, `223...`).
 * A network prefix never decides: numbers are portable and new ranges appear.
 * @returns E.164 (`+22370000001`), or null when it is no Mali mobile number
 */
export function parsePhone(text: string): string | null {
  if (text.length > 32) return null
  const [, number = ''] = /^(?:(?:\+|00)?223)?(\d{8})$/.exec(text.replace(/[\s().-]/g, '')) ?? []
  return mobile.test(number) ? `+223${number}` : null
}

function planOf(country: 'ML'): Patterns {
  const metadata = new Metadata()
  metadata.selectNumberingPlan(country)
  return metadata.numberingPlan as unknown as Patterns
}

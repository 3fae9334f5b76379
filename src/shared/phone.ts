import { parsePhoneNumberFromString } from 'libphonenumber-js/mobile'

/**
 * Reads a Mali mobile number in any usual writing (`70 00 00 01`, `+223...`, `00223...`, `223...`).
 * A network prefix never decides: numbers are portable and new ranges appear.
 * @returns E.164 (`+22370000001`), or null when it is no Mali mobile number
 */
export function parsePhone(text: string): string | null {
  if (text.length > 32 || !/^[+\d\s().-]+$/.test(text)) return null
  const digits = text.replace(/[^\d+]/g, '')
  const international = digits.startsWith('00')
    ? `+${digits.slice(2)}`
    : /^223\d{8}$/.test(digits)
      ? `+${digits}`
      : digits
  const parsed = parsePhoneNumberFromString(international, 'ML')
  return parsed?.country === 'ML' && parsed.isValid() ? parsed.number : null
}

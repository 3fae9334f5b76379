/**
 * The mobile numbers of Mali as libphonenumber knows them. Only this is taken from it, and a test holds it
 * against the library: its parser costs as much as a payment, and its tables of all countries 6 MB.
 */
const mobile = /^(?:2(?:0(?:01|79)|17\d)\d{4}|(?:5[0-3]|[679]\d|8[2-59])\d{6})$/

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

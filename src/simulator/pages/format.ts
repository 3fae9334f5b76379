import type { PhoneLanguage } from './words.ts'

/** Formats an amount for people: "5 000 F CFA". */
export function money(francs: string | bigint, language: PhoneLanguage): string {
  return new Intl.NumberFormat(language, { style: 'currency', currency: 'XOF' }).format(BigInt(francs))
}

/** Formats a date and a time of day, in Mali's time. */
export function timeOfDay(at: number, language: PhoneLanguage): string {
  const options = { dateStyle: 'medium', timeStyle: 'short', timeZone: 'Africa/Bamako' } as const
  return new Intl.DateTimeFormat(language, options).format(at)
}

/** Formats a number of Mali as "+223 70 09 00 01"; other numbers stay unchanged. */
export function spacedNumber(msisdn: string): string {
  return msisdn.replace(/^\+223(\d\d)(\d\d)(\d\d)(\d\d)$/, '+223 $1 $2 $3 $4')
}

/** Reads a number as a person types it. @returns E.164, or null when it is no number */
export function typedNumber(typed: string): string | null {
  const digits = typed.replace(/[\s.-]/g, '').replace(/^(\+|00)/, '')
  if (/^\d{8}$/.test(digits)) return `+223${digits}`
  return /^\d{9,15}$/.test(digits) ? `+${digits}` : null
}

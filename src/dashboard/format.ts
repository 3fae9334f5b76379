import type { AppLanguage } from './language.ts'

// Money, times and shares as people of Mali and readers of English write them.

const amounts = {
  fr: new Intl.NumberFormat('fr', { style: 'currency', currency: 'XOF', maximumFractionDigits: 0 }),
  en: new Intl.NumberFormat('en', { style: 'currency', currency: 'XOF', maximumFractionDigits: 0 }),
}

/** Writes an amount in whole XOF with its currency: `5 000 F CFA`. */
export function formatXof(amount: number, language: AppLanguage): string {
  return amounts[language].format(amount)
}

/** Writes a share of one as whole percents: `97 %`. */
export function formatShare(share: number, language: AppLanguage): string {
  return new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: 0 }).format(share)
}

/** Writes a moment of today as an hour, and another one as a day with its hour, and with an earlier year. */
export function formatMoment(moment: string, language: AppLanguage, timeZone = usualZone): string {
  const date = new Date(moment)
  const isToday = dayOf(date, timeZone) === dayOf(new Date(), timeZone)
  const hour = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZone } as const
  const day = isToday ? {} : dayForm(date, timeZone)
  return new Intl.DateTimeFormat(language, { ...day, ...hour }).format(date)
}

/**
 * Writes the moment at which money leaves: with its day also where it is today, and with its zone where the
 * clock of the reader is in another one.
 */
export function formatDeparture(moment: string, language: AppLanguage, timeZone = usualZone): string {
  const date = new Date(moment)
  const wholeSecond = Math.floor(date.getTime() / 1_000) * 1_000
  const isElsewhere = offsetMs(wholeSecond, timeZone) !== -date.getTimezoneOffset() * 60_000
  const hour = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZone } as const
  const day = { weekday: 'short', ...dayForm(date, timeZone) } as const
  const zone = isElsewhere ? ({ timeZoneName: 'short' } as const) : {}
  return new Intl.DateTimeFormat(language, { ...day, ...hour, ...zone }).format(date)
}

/** The parts of a date that tell its day: the year only where it is not the present one. */
function dayForm(date: Date, timeZone: string): Intl.DateTimeFormatOptions {
  const isThisYear = dayOf(date, timeZone).slice(0, 4) === dayOf(new Date(), timeZone).slice(0, 4)
  return { day: 'numeric', month: 'short', ...(!isThisYear && { year: 'numeric' }) }
}

/** Writes a day without its hour: `lun. 30 nov.`. */
export function formatDay(moment: string, language: AppLanguage, timeZone = usualZone): string {
  const form = { weekday: 'short', day: 'numeric', month: 'short', timeZone } as const
  return new Intl.DateTimeFormat(language, form).format(new Date(moment))
}

/** The time zone of Mali: the service counts days in it unless the settings of the account name another. */
export const usualZone = 'Africa/Bamako'

/** Returns the day of a moment, in the form `2026-11-30`. */
export function dayOf(date: Date, timeZone = usualZone): string {
  // The Swedish form of a date is the one of ISO 8601.
  return new Intl.DateTimeFormat('sv', { timeZone }).format(date)
}

/** Returns the moment at which a day such as `2026-11-30` begins, in ISO 8601. */
export function dayStart(day: string, timeZone = usualZone): string {
  return momentOf(day, '00:00', timeZone)
}

/** Returns the moment of a time such as `08:30` on a day such as `2026-11-30`, in ISO 8601. */
export function momentOf(day: string, time: string, timeZone = usualZone): string {
  const written = new Date(`${day}T${time}:00Z`).getTime()
  if (Number.isNaN(written)) return day
  // The offset at this time in UTC may be that of another day: the second look uses the one of the moment.
  const guess = written - offsetMs(written, timeZone)
  return new Date(written - offsetMs(guess, timeZone)).toISOString()
}

/** Returns how far the clocks of a zone are ahead of UTC, in milliseconds. */
function offsetMs(moment: number, timeZone: string): number {
  const form = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
  return new Date(`${form.format(moment).replace(' ', 'T')}Z`).getTime() - moment
}

/** Writes a moment with its day, its hour and its second, for a timeline: `30 nov., 14:05:09`. */
export function formatInstant(moment: string, language: AppLanguage, timeZone = usualZone): string {
  const date = new Date(moment)
  const day = dayForm(date, timeZone)
  const hour = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const
  return new Intl.DateTimeFormat(language, { ...day, ...hour, timeZone }).format(date)
}

/** Writes a Malian number in pairs, as people read it out: `70 00 03 00`; another number stays as it is. */
export function formatPhone(phone: string): string {
  const [, digits] = /^\+223(\d{8})$/.exec(phone) ?? []
  return digits?.replaceAll(/(\d{2})(?=\d)/g, '$1 ') ?? phone
}

/**
 * Keeps words that a person typed apart from the words of the page around them: a number that follows Arabic
 * words would be drawn before them.
 */
export function isolate(words: string): string {
  return words && `\u2068${words}\u2069`
}

/**
 * Reads an amount as people write it, with or without spaces; null where it is none. A point or a comma is
 * one between thousands: `50,00` is no amount, and not five thousand.
 */
export function readAmount(typed: string): number | null {
  const amount = typed.replaceAll(/\s/g, '')
  return /^(\d{1,12}|\d{1,3}([.,]\d{3}){1,3})$/.test(amount) ? Number(amount.replaceAll(/\D/g, '')) : null
}

import { dayOf, dayStart } from '../format.ts'
import type { AppLanguage } from '../language.ts'

// Months in the form `2026-11`. They begin at midnight in the time zone of the account.

/** The earliest month of the choice: no account is older. */
const firstMonth = '2020-01'
/** The months of the choice. Choice: three years; an older one is reached month by month. */
const choiceMonths = 36

/** Returns the running month. */
export function thisMonth(timeZone: string): string {
  return dayOf(new Date(), timeZone).slice(0, 7)
}

/** Reads the month in the address of the page; a wrong or future one gives the running month. */
export function readMonth(query: string, timeZone: string): string {
  const month = new URLSearchParams(query).get('month') ?? ''
  const newest = thisMonth(timeZone)
  const isMonth = /^\d{4}-(0[1-9]|1[0-2])$/.test(month)
  return isMonth && month >= firstMonth && month <= newest ? month : newest
}

/** Returns the month that is so many months later; null before the earliest and after the running one. */
export function monthBeside(month: string, months: number, timeZone: string): string | null {
  const beside = monthAfter(month, months)
  return beside < firstMonth || beside > thisMonth(timeZone) ? null : beside
}

function monthAfter(month: string, months: number): string {
  const [year = 0, number = 1] = month.split('-').map(Number)
  return new Date(Date.UTC(year, number - 1 + months)).toISOString().slice(0, 7)
}

/** Returns the months of the choice, the newest first; the shown one is always among them. */
export function monthsToChoose(shown: string, timeZone: string): string[] {
  const newest = thisMonth(timeZone)
  const months = Array.from({ length: choiceMonths }, (_, index) => monthAfter(newest, -index))
  const recent = months.filter((month) => month >= firstMonth)
  return recent.includes(shown) ? recent : [...recent, shown]
}

/** Returns the moments between which a month lies: its first is part of it, its last is not. */
export function spanOf(month: string, timeZone: string): { from: string; to: string } {
  return {
    from: dayStart(`${month}-01`, timeZone),
    to: dayStart(`${monthAfter(month, 1)}-01`, timeZone),
  }
}

/** Writes a month: `novembre 2026`. */
export function formatMonth(month: string, language: AppLanguage): string {
  const form = { month: 'long', year: 'numeric', timeZone: 'UTC' } as const
  return new Intl.DateTimeFormat(language, form).format(new Date(`${month}-01T00:00:00Z`))
}

import type { PaymentMethod, TransactionFilter, TransactionStatus, TransactionType } from './operations.ts'
import { dayStart } from './format.ts'

/**
 * The filter of payments as a person chose it: the fields of the form, which are also the parameters of the
 * address, so that a filter can be kept, sent and gone back to. An empty text is no condition.
 */
export type PaymentFilter = Record<FilterField, string>

export const filterFields = [
  'search',
  'status',
  'kind',
  'operator',
  'from',
  'to',
  'min',
  'max',
  'link',
] as const
type FilterField = (typeof filterFields)[number]

/** The statuses as people ask for them. */
export const statusGroups = {
  success: ['SUCCESS'],
  waiting: ['PENDING', 'PROCESSING'],
  failed: ['FAILED'],
  over: ['EXPIRED', 'CANCELLED'],
  reversed: ['REVERSED'],
} as const satisfies Record<string, readonly TransactionStatus[]>
export type StatusGroup = keyof typeof statusGroups

/** The types of payments as people ask for them; without a choice, both. */
export const kinds = { in: ['PAY'], out: ['DEPOSIT'] } as const satisfies Record<string, TransactionType[]>
type Kind = keyof typeof kinds

export const operators = [
  'OperatorA',
  'OperatorB',
  'OperatorC',
  'OperatorD',
] as const satisfies PaymentMethod[]

const forms: Partial<Record<FilterField, RegExp>> = {
  status: new RegExp(`^(${Object.keys(statusGroups).join('|')})$`),
  kind: new RegExp(`^(${Object.keys(kinds).join('|')})$`),
  operator: new RegExp(`^(${operators.join('|')})$`),
  min: /^\d{1,15}$/,
  max: /^\d{1,15}$/,
  link: /^\d{1,10}$/,
}

function isWellFormed(name: FilterField, value: string): boolean {
  return name === 'from' || name === 'to' ? isDay(value) : forms[name]?.test(value) !== false
}

/** Whether a text is a day of the calendar, in a year of four digits like the next one. */
function isDay(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`)
  if (!/^(?!9999)[1-9]\d{3}-\d{2}-\d{2}$/.test(text) || Number.isNaN(date.getTime())) return false
  return date.toISOString().startsWith(text)
}

/** Reads a filter from the parameters of an address. What no form could have written is left out. */
export function readFilter(query: string): PaymentFilter {
  const given = new URLSearchParams(query)
  const fields = filterFields.map((name) => {
    const value = (given.get(name) ?? '').trim()
    return [name, isWellFormed(name, value) ? value : ''] as const
  })
  return Object.fromEntries(fields) as PaymentFilter
}

/** Writes a filter as the parameters of an address; '' where it has no condition. */
export function writeFilter(filter: Readonly<Partial<PaymentFilter>>): string {
  const fields = filterFields.flatMap((name) =>
    filter[name] ? [[name, filter[name]] as [string, string]] : [],
  )
  return new URLSearchParams(fields).toString()
}

/** The least letters and digits of a search, as the service asks for them. */
const searchLengthMin = 3

/** Whether the text of a search is long enough for the service. */
export function isSearchable(search: string): boolean {
  return search === '' || (search.match(/[\p{L}\p{N}]/gu) ?? []).length >= searchLengthMin
}

/** Returns the filter in the form of the API. @param timeZone in which the days of the filter are days */
export function apiFilterOf(filter: PaymentFilter, timeZone: string): TransactionFilter {
  const { search, status, kind, operator, from, to, min, max, link } = filter
  const types = kind === '' ? (['PAY', 'DEPOSIT'] as const) : kinds[kind as Kind]
  // By a link money only comes in: without a type the service knows the total, and need not count the rows.
  const isImplied = link !== '' && kind !== 'out'
  return {
    ...(!isImplied && { transactionType: types }),
    ...(search !== '' && isSearchable(search) && { search }),
    ...(status !== '' && { status: statusGroups[status as StatusGroup] }),
    ...(operator !== '' && { paymentMethod: [operator as PaymentMethod] }),
    ...(from !== '' && { createdFrom: dayStart(from, timeZone) }),
    ...(to !== '' && { createdTo: lastMomentOf(to, timeZone) }),
    ...(min !== '' && { amountMin: Number(min) }),
    ...(max !== '' && { amountMax: Number(max) }),
    ...(link !== '' && { paymentLink: link }),
  }
}

/** The last millisecond of a day. The next day may begin 23 or 25 hours after it. */
function lastMomentOf(day: string, timeZone: string): string {
  const next = new Date(`${day}T12:00:00Z`)
  next.setUTCDate(next.getUTCDate() + 1)
  const start = dayStart(next.toISOString().slice(0, 10), timeZone)
  return new Date(new Date(start).getTime() - 1).toISOString()
}

import type { Xof } from '../shared/money.ts'
import type { Provider } from '../shared/providers.ts'
import { isInYears } from '../shared/time.ts'
import type { Log } from '../telemetry/log.ts'

/**
 * A JSON object as operators really send it: names in any case, several spellings, numbers as strings. For a
 * field that is absent or has another form, `flag` returns false and every other method undefined; none
 * throws.
 */
export interface WireRecord {
  /** Returns the text or number under the first of the names that has one. */
  text(...names: readonly string[]): string | undefined
  /** Returns `text` in lower case, for words that the code compares. */
  word(...names: readonly string[]): string | undefined
  date(...names: readonly string[]): Date | undefined
  /**
   * Returns whole francs; undefined where the value is no amount, has a fraction, or is more than 2^53 - 1.
   */
  amount(...names: readonly string[]): Xof | undefined
  count(...names: readonly string[]): number | undefined
  /** Whether the value is `true`. */
  flag(name: string): boolean
  record(...names: readonly string[]): WireRecord | undefined
  /** Returns the objects of an array; undefined where there is no array. */
  list(...names: readonly string[]): readonly WireRecord[] | undefined
}

/** Reads a parsed JSON value; undefined where it is no object. */
export function wireRecord(json: unknown): WireRecord | undefined {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return undefined
  const fields = new Map(Object.entries(json).map(([name, value]) => [name.toLowerCase(), value as unknown]))
  const all = (names: readonly string[]) => names.map((name) => fields.get(name.toLowerCase()))
  const text = (...names: readonly string[]) => first(all(names), asText)
  return {
    text,
    word: (...names) => text(...names)?.toLowerCase(),
    date: (...names) => first(all(names), (value) => asDate(asText(value))),
    amount: (...names) => first(all(names), (value) => asAmount(asText(value))),
    count: (...names) => first(all(names), (value) => asCount(asText(value))),
    flag: (name) => fields.get(name.toLowerCase()) === true,
    record: (...names) => first(all(names), wireRecord),
    list: (...names) => first(all(names), (value) => (Array.isArray(value) ? wireRecords(value) : undefined)),
  }
}

/** Returns the objects of a JSON array; other entries are dropped. */
export function wireRecords(json: unknown): readonly WireRecord[] {
  return Array.isArray(json) ? json.flatMap((entry) => wireRecord(entry) ?? []) : []
}

/**
 * Reads whole francs from a decimal text (`5000`, `5000.00`). XOF has no minor unit, so a number with a
 * fraction is no amount. Amounts are also stored and answered as JSON numbers, so a number that JSON cannot
 * hold exactly is no amount.
 */
export function asAmount(text: string | undefined): Xof | undefined {
  const whole = text === undefined ? null : /^(\d{1,16})(?:\.0{1,4})?$/.exec(text)
  if (whole?.[1] === undefined || !Number.isSafeInteger(Number(whole[1]))) return undefined
  return BigInt(whole[1])
}

/**
 * The largest amount that an operator may report for one payment, in whole XOF. Choice: a hundred times the
 * largest payout. So a payment is still booked, with an alarm, if its operator begins to write centimes.
 */
export const movedAmountMax: Xof = 10_000_000_000n

/**
 * Returns the amount that one payment or reversal moved, under the first of the names with a value; undefined
 * if the value is no amount, zero, or more than any payment can be. Then the operator is asked again.
 */
export function movedAmount(record: WireRecord, ...names: readonly string[]): Xof | undefined {
  const amount = asAmount(record.text(...names))
  return amount !== undefined && amount > 0n && amount <= movedAmountMax ? amount : undefined
}

/** Raises an alarm: an operator reports a payment with an amount or a currency that cannot be booked. */
export function alarmUnreadable(
  log: Log,
  provider: Provider,
  correlationId: string,
  record: WireRecord,
): void {
  const said = record.text('receive_amount', 'amount')?.slice(0, saidLengthMax)
  const line = { provider, correlationId, said, currency: record.text('currency') }
  log.error(line, 'alarm: an operator reports an amount that cannot be read')
}

/** The greatest length of an unreadable amount in the log. */
const saidLengthMax = 40

/**
 * Returns a fee to store beside a payment (it is never booked); undefined if it is more than any payment can
 * be.
 */
export function keptFee(fee: Xof | undefined): Xof | undefined {
  return fee !== undefined && fee <= movedAmountMax ? fee : undefined
}

const textLengthMax = 1_000

function asText(value: unknown): string | undefined {
  // Half of a surrogate pair would break addresses that contain the text, and a zero character would break
  // the database. No word of an operator needs more than `textLengthMax` characters.
  if (typeof value === 'string') {
    return value.replaceAll('\0', '').slice(0, textLengthMax).toWellFormed() || undefined
  }
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : undefined
}

/** Reads a time of an operator; undefined for one that PostgreSQL could not read from the evidence. */
function asDate(text: string | undefined): Date | undefined {
  const date = text === undefined ? undefined : new Date(text)
  return date !== undefined && isInYears(date) ? date : undefined
}

function asCount(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}

function first<T>(values: readonly unknown[], read: (value: unknown) => T | undefined): T | undefined {
  for (const value of values) {
    const found = read(value)
    if (found !== undefined) return found
  }
  return undefined
}

import { z } from 'zod'
import { amount, exactText, text } from './input.ts'
import { time, timeTo } from './time.ts'

// The parts of which the filters of all lists are made.

/** The most values of one field of a filter. Choice: more than any enum has. */
const filterValuesMax = 20

/**
 * Makes the schema of one or several values of a filter. A query string separates them by commas:
 * `status=failed,expired`.
 */
export function someOf<Value extends z.ZodType>(value: Value) {
  return z
    .unknown()
    .transform((given, ctx): z.output<Value>[] => {
      const values = typeof given === 'string' ? given.split(',') : Array.isArray(given) ? given : [given]
      if (values.length < 1 || values.length > filterValuesMax)
        ctx.addIssue({ code: 'custom', message: `must have 1 to ${filterValuesMax} values` })
      else {
        const read = z.array(value).safeParse(values)
        if (read.success) return read.data
        ctx.addIssue({ code: 'custom', message: read.error.issues[0]?.message ?? 'is not valid' })
      }
      return z.NEVER
    })
    .meta({ graphql: z.array(value) })
}

/** Whether a field of a filter takes several values: whether its schema comes from `someOf`. */
export function takesMany(schema: unknown): boolean {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return takesMany(schema.unwrap())
  return schema instanceof z.ZodType && schema.meta()?.['graphql'] instanceof z.ZodArray
}

const filterAmount = amount({ min: 0, max: Number.MAX_SAFE_INTEGER })

/** The schema of a bound of an amount, in whole francs; in a query string, digits. */
const amountBound = z
  .preprocess(
    (value) => (typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value),
    filterAmount,
  )
  .meta({ graphql: 'Amount' })

/** The fields of a filter by the moment of creation. Both ends are included. */
export const createdRange = { createdFrom: time.nullish(), createdTo: timeTo.nullish() }

/** The fields of a filter by the amount. */
export const amountRange = { amountMin: amountBound.nullish(), amountMax: amountBound.nullish() }

/** The author of a payment, as the audit log writes it: `member:7` or `api_key:12`. */
export const authorFilter = exactText({ min: 1, max: 100 })

/** The least letters and digits of a search: the index of words knows texts by three characters in a row. */
const searchLengthMin = 3

/** The schema of the text that a list is searched for. */
export const searchText = text({ max: 100 }).refine(
  (value) => (value.match(/[\p{L}\p{N}]/gu) ?? []).length >= searchLengthMin,
  `must have at least ${searchLengthMin} letters or digits`,
)

/** Makes the description of the field `search` of a filter. @param parts the texts that a search looks in */
export const searchWords = (parts: string) =>
  `${parts} contains this text; capitals and accents do not matter. At least ${searchLengthMin} letters or ` +
  'digits. Digits may have spaces between them.'

/**
 * Returns a search in the form of LIKE; null where there is none. Digits with spaces may be a phone number,
 * and those are stored without spaces. The index is asked without the country code: its digits stand in every
 * row, and would take the index longer than all others.
 */
export function searchOf(given: string | null | undefined) {
  if (given == null) return null
  const words = given.trim()
  const digits = words.replaceAll(/\s/g, '')
  const spaceless = digits !== words && /^\+?\d+$/.test(digits) ? digits : null
  const formsOf = (form: string) => ({
    pattern: patternOf(form),
    probe: patternOf(/^\+223(?=(?:\s*\d){3})(.+)$/.exec(form)?.[1] ?? form),
  })
  return [words, ...(spaceless === null ? [] : [spaceless])].map(formsOf)
}

const patternOf = (words: string) => `%${words.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`

/** Returns Prisma's condition of a range with both bounds included; undefined where it has no bound. */
export function within<Value extends Date | bigint>(
  from: Value | null | undefined,
  to: Value | null | undefined,
): { gte?: Value; lte?: Value } | undefined {
  return from == null && to == null
    ? undefined
    : { ...(from != null && { gte: from }), ...(to != null && { lte: to }) }
}

/** Returns Prisma's condition that a column has one of these values; undefined where there are none. */
export function among<Value>(values: readonly Value[] | null | undefined) {
  return values ? { in: [...values] } : undefined
}

/** Removes the conditions that are undefined. */
export function conditions<Where extends object>(where: Where) {
  return Object.fromEntries(Object.entries(where).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Where]: Exclude<Where[Name], undefined>
  }
}

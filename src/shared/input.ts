import { z } from 'zod'
import { DomainError, type FieldProblem } from './errors.ts'
import { limits } from './limits.ts'
import { currency } from './money.ts'
import { wordMeantBy } from './near-spelling.ts'
import { parseContactPhone, parsePhone, phoneLengthMax, withoutMarks } from './phone.ts'
import { providers } from './providers.ts'

/** The most characters of a reference (see docs/design/rules.md#bounds). */
export const referenceLengthMax = 100

/** The most characters of an e-mail address to which mail can be delivered (RFC 5321). */
const emailLengthMax = 254

/**
 * Reads an input by its schema. All channels check their fields here.
 * @throws DomainError INVALID_INPUT that lists every problem with its field
 */
export function readInput<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw invalidInput(
    result.error.issues.map((issue) => ({ field: fieldPath(issue.path), message: issue.message })),
  )
}

/**
 * Reads two parts of one request, and reports the problems of both in one refusal.
 * @throws DomainError INVALID_INPUT that lists every problem; any other error of a part is thrown as it is
 */
export async function readTogether<One, Other>(
  one: () => One,
  other: () => Promise<Other> | Other,
): Promise<[One, Other]> {
  // Call both, also if the first one throws.
  const read = await Promise.allSettled([(async () => one())(), (async () => other())()] as const)
  const [first, second] = read
  if (first.status === 'fulfilled' && second.status === 'fulfilled') return [first.value, second.value]
  const thrown = read.flatMap((each): unknown[] => (each.status === 'rejected' ? [each.reason] : []))
  const problems = thrown.map((error) => (error instanceof DomainError ? error.detail.problems : undefined))
  if (problems.length < 2 || problems.includes(undefined))
    throw thrown[problems.indexOf(undefined)] ?? thrown[0]
  throw invalidInput(problems.flatMap((found) => found ?? []))
}

/** Makes a refusal that lists all problems. Its message names the first one. */
export function invalidInput(problems: readonly FieldProblem[]): DomainError {
  const [first] = problems
  const message = first ? `${first.field ? `${snakeCase(first.field)} ` : ''}${first.message}.` : undefined
  return new DomainError('INVALID_INPUT', message, { problems })
}

/** Converts `customerPhone` to `customer_phone`, the name of the field in REST. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** Converts `customer_phone` to `customerPhone`. */
export function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase())
}

/** Writes the place of a field: `recipients[3].amount`. */
export function fieldPath(parts: readonly PropertyKey[]): string {
  return parts
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index > 0 ? '.' : ''}${String(part)}`))
    .join('')
}

const required = 'is required'

/**
 * Matches control characters, invisible characters and single surrogates (halves of a character). They are
 * refused: texts that look equal must be equal, and PostgreSQL cannot store a single surrogate.
 */
const hidden = /[\p{C}\p{Zl}\p{Zp}]/v

/** Matches the same, without what joins emoji, shapes letters (U+200C, U+200D) and makes flags (tags). */
const hiddenInWords = /[[\p{C}\p{Zl}\p{Zp}]--[\u200c-\u200d\u{e0020}-\u{e007f}]]/v
const hiddenInLines = /[[\p{C}\p{Zl}\p{Zp}]--[\n\t\u200c-\u200d\u{e0020}-\u{e007f}]]/v

/** Matches letters and marks that no font draws, such as variation selectors and Hangul fillers. */
const shapeless = /[[\p{L}\p{M}]&&\p{Default_Ignorable_Code_Point}]/v
const blank = /^[\s\u200c-\u200d\u{e0020}-\u{e007f}[[\p{L}\p{M}]&&\p{Default_Ignorable_Code_Point}]]*$/v

interface Bounds {
  min?: number
  max: number
}

/** Makes the schema of a line of text for people: a name, a title, a reason. */
export function text(bounds: Bounds) {
  return textOf(bounds, hiddenInWords)
}

/** Makes the schema of a text of one or several lines for people. Each kind of line break becomes `\n`. */
export function lines(bounds: Bounds) {
  return textOf(bounds, hiddenInLines, (value) => value.replaceAll(/\r\n?|[\v\u0085\u2028\u2029]/g, '\n'))
}

/**
 * Makes the schema of a text that programs compare, such as an account or a code: without any character that
 * a person does not see.
 * @param inForm brings a text into the form in which it is checked, stored and compared
 */
export function exactText(bounds: Bounds, inForm?: (value: string) => string) {
  return textOf(bounds, hidden, inForm)
}

function textOf({ min = 0, max }: Bounds, refused: RegExp, inForm = (value: string) => value) {
  return z
    .string({
      error: (issue) => (issue.input === undefined || issue.input === null ? required : 'must be text'),
    })
    .overwrite(inForm)
    .refine((value) => value.isWellFormed() && !refused.test(value), noHidden)
    .refine((value) => Array.from(value).length <= max, `must have at most ${max} characters`)
    .refine((value) => min === 0 || !blank.test(value), 'must not be empty')
}

const noHidden = 'must not contain control or hidden characters'

/** The reason why an amount with a fraction is refused, at every door. */
export const wholeFrancs = 'must be a whole number of francs: XOF has no minor unit'

/** Makes the schema of an amount in whole francs within bounds, from a JSON number or a bigint. */
export function amount(bounds: { min: number; max: number }) {
  return z
    .unknown()
    .transform((value, ctx): bigint => {
      const problem = amountProblem(value, bounds)
      if (problem === null) return BigInt(value as number | bigint)
      ctx.addIssue({ code: 'custom', message: problem })
      return z.NEVER
    })
    .meta({ graphql: 'Amount' })
}

function amountProblem(value: unknown, { min, max }: { min: number; max: number }): string | null {
  if (value === undefined || value === null) return required
  if (typeof value !== 'number' && typeof value !== 'bigint') return 'must be a number'
  if (typeof value === 'number' && !Number.isInteger(value)) {
    return wholeFrancs
  }
  if (value < min) return `must be at least ${min} XOF`
  if (value > max) return `must be at most ${max} XOF`
  return null
}

/** Makes the schema of a telephone number in any usual writing. It gives E.164. */
function telephone(read: (typed: string) => string | null, problem: string) {
  return exactText({ max: phoneLengthMax }, withoutMarks).transform((value, ctx) => {
    const number = read(value)
    if (number !== null) return number
    ctx.addIssue({ code: 'custom', message: problem })
    return z.NEVER
  })
}

/** The schema of a mobile number of Mali. */
export const phone = telephone(parsePhone, 'must be a mobile number in Mali')

/** The schema of a number at which a person is called or written to. */
export const contactPhone = telephone(
  parseContactPhone,
  'must be a telephone number, such as +223 76 12 34 56',
)

/** The schema of the name of one of the four operators. */
export const provider = z.enum(providers, {
  error: (issue) => {
    if (issue.input === undefined || issue.input === null) return required
    if (issue.input === 'BankTransfer') return 'BankTransfer is not supported here'
    return mustBeOneOf(providers, issue.input)
  },
})

/** Returns the problem of a value that is none of the words; a word that is near is named. */
export function mustBeOneOf(words: readonly string[], given: unknown): string {
  const meant = typeof given === 'string' ? wordMeantBy(given, words) : null
  const hint = meant === null ? '' : `: write ${meant}, not ${JSON.stringify(given)}`
  return `must be one of ${words.join(', ')}${hint}`
}

/** Makes the schema of one word out of several. */
export function oneOf<const Word extends string>(words: readonly Word[]) {
  return z.enum(words, {
    error: ({ input }) => (input === undefined || input === null ? required : mustBeOneOf(words, input)),
  })
}

/** The schema of a boolean; in a query string, the word `true` or `false`. */
export const truth = z.preprocess(
  (value) => (value === 'true' ? true : value === 'false' ? false : value),
  z.boolean('must be true or false'),
)

/**
 * The schema of the merchant's own name for a payment: 1 to 100 printable characters, in the composed form of
 * Unicode (NFC). Every door reads a reference by this schema, also where it looks for a payment. Outer spaces
 * and marks without a shape are refused, because two references that look equal must be one payment.
 */
export const reference = exactText({ min: 1, max: referenceLengthMax }, (value) => value.normalize('NFC'))
  .refine((value) => value.trim() === '' || !outerSpace.test(value), 'must not begin or end with a space')
  .refine((value) => !shapeless.test(value), noHidden)
  .refine(
    (value) => value !== '.' && value !== '..',
    'must not be "." or "..": the address of a payment cannot contain them',
  )

const outerSpace = /^\p{Zs}|\p{Zs}$/u

export const currencyField = z
  .literal(currency, { error: `must be ${currency}` })
  .meta({ graphql: [currency] })

/**
 * Makes the schema of a field that has a default: a field that is left out, and null, mean the default.
 * GraphQL shows it as the default of the field.
 */
export function withDefault<T extends z.ZodType, const Value extends z.output<T>>(type: T, value: Value) {
  return type
    .nullish()
    .transform((given) => given ?? value)
    .meta({ default: value })
}

/**
 * Makes the schema of a field of a change whose value can be replaced, but not removed: a field that is left
 * out stays as it is, and null is refused.
 */
export function replaced<T extends z.ZodType>(type: T) {
  return z
    .custom<z.input<T>>((value) => value !== null, {
      error: 'must not be null: leave it out to keep it',
      abort: true,
    })
    .pipe(type as z.ZodType<z.output<T>, z.input<T>>)
    .meta({ graphql: type })
    .optional()
}

/** The schema of the currency of a new payment or link. */
export const xofByDefault = withDefault(currencyField, currency)

export const email = exactText({ max: emailLengthMax }).pipe(z.email('must be an e-mail address'))

/** The schema of a page of a list: the number of rows, and the number of rows to skip before them. */
export const pageInput = z.object({
  limit: wholeNumber(1, limits.pageSizeMax).default(limits.pageSizeDefault),
  offset: wholeNumber(0, limits.offsetMax).default(0),
})

/** Makes the schema of a whole number within bounds, from a JSON number or, in a query string, digits. */
export function wholeNumber(min: number, max: number) {
  const words = `must be a whole number from ${min} to ${max}`
  return z
    .preprocess(
      (value) => (typeof value === 'string' && /^-?\d{1,16}$/.test(value) ? Number(value) : value),
      z.custom<number>(
        (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max,
        words,
      ),
    )
    .meta({ graphql: 'Int' })
}

/**
 * The forms of telephone numbers in texts: E.164 (`+` may be `%2B` in a URL), with Mali's country code,
 * and Mali's eight digits alone or in pairs. Digits that only look like a number do not match: the first part
 * of a UUID, a part of a longer word or number, and an id that follows its kind (`payout:70000001`).
 */
const telephones = new RegExp(
  [
    /(?<!\w)(?:\+|%2B)[1-9]\d{7,14}(?!\w)/,
    /(?<!\w)(?:00)?223 ?\d{2}(?: ?\d{2}){3}(?!\w)/,
    /(?<![\w.]|\b(?:transaction|payout|recipient|batch):)[5-9]\d(?: ?\d{2}){3}(?!\w|-[\da-f]{4}-|\.\d)/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gi',
)

/** Masks the telephone numbers of a text: `+223******01`, `******01`. */
export function maskTelephones(text: string): string {
  return text.replace(telephones, (number: string) => {
    const kept = /^(?:(?:\+|%2B|00)?223|(?:\+|%2B)\d{3})/i.exec(number)?.[0] ?? ''
    return `${kept}******${number.slice(-2)}`
  })
}

/**
 * Masks the telephone numbers in every text of a log line, names of fields included. JSON numbers stay as
 * they are: amounts, ids, durations.
 * @param line one JSON object
 */
export function maskLine(line: string): string {
  return line.replace(texts, (text) => {
    // Nearly every text has no run of eight digits: skip it without parsing.
    if (!digits.test(text)) return text
    const said = JSON.parse(text) as string
    const masked = maskTelephones(said)
    return masked === said ? text : JSON.stringify(masked)
  })
}

/** Matches a text of JSON, with its quotation marks. */
const texts = /"(?:[^"\\]|\\.)*"/g
const digits = /\d(?: ?\d){7}/

/**
 * Removes the texts of a database error that quote a row (`Failing row contains (...)`): `detail` and
 * `where`, also if a library wrapped the error in its own. The table, the constraint and the code stay.
 */
export function withoutRows(shown: unknown, depth = 0): unknown {
  if (typeof shown !== 'object' || shown === null || 'toJSON' in shown || depth > depthMax) return shown
  if (Array.isArray(shown)) return shown.map((each) => withoutRows(each, depth + 1))
  return Object.fromEntries(
    Object.entries(shown)
      .filter(([name, value]) => !(quoting.has(name) && typeof value === 'string'))
      .map(([name, value]) => [name, withoutRows(value, depth + 1)]),
  )
}

const quoting: ReadonlySet<string> = new Set(['detail', 'where'])
/** Prisma puts the driver's error three levels deep into its own. */
const depthMax = 4

/**
 * Telephone numbers as they come in texts: in E.164 form (`+` may be `%2B` in an address), with Mali's
 * country code, and Mali's eight digits alone or in pairs. What only looks like one is left: the first part
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

/** @returns the text with its telephone numbers masked: `+223******01`, `******01` */
export function maskTelephones(text: string): string {
  return text.replace(telephones, (number: string) => {
    const kept = /^(?:(?:\+|%2B|00)?223|(?:\+|%2B)\d{3})/i.exec(number)?.[0] ?? ''
    return `${kept}******${number.slice(-2)}`
  })
}

/**
 * Masks the telephone numbers in every text of a log line, names of fields included. Numbers that are no text
 * stay: amounts, ids, durations.
 * @param line one JSON object
 */
export function maskLine(line: string): string {
  return line.replace(texts, (text) => {
    // Nearly every text is without eight digits.
    if (!digits.test(text)) return text
    const said = JSON.parse(text) as string
    const masked = maskTelephones(said)
    return masked === said ? text : JSON.stringify(masked)
  })
}

/** A text of JSON, with its quotation marks. */
const texts = /"(?:[^"\\]|\\.)*"/g
const digits = /\d(?: ?\d){7}/

/**
 * Leaves out what a database error quotes of a row (`Failing row contains (...)`): its `detail` and `where`,
 * however deep a library wrapped it. Its table, constraint and code stay.
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

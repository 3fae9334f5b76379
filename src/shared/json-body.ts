import { isUtf8 } from 'node:buffer'
import type { DomainError } from './errors.ts'
import { exactNumber, mayLoseFraction } from './exact-number.ts'
import { invalidInput } from './input.ts'
import { limits } from './limits.ts'
import { yieldIfBusy } from './yield-if-busy.ts'

// Every door reads the JSON of its callers here: a body that one door refuses means nothing at another one.

/** The longest name that a field of the API may have. */
export const jsonNameLengthMax = 100

/**
 * Whether the headers of a body say that the body is JSON, in UTF-8 and not packed. `+json` counts as JSON.
 */
export function isJson(contentType: string, contentEncoding = 'identity'): boolean {
  const [type = '', ...parameters] = contentType.toLowerCase().split(';')
  return (
    /^\s*(application\/json|[^\s]+\+json)\s*$/.test(type) &&
    parameters.every((each) => !/^\s*charset\s*=/.test(each) || /=\s*("utf-?8"|utf-?8)\s*$/.test(each)) &&
    contentEncoding.toLowerCase() === 'identity'
  )
}

/**
 * Reads JSON that a caller sent: UTF-8, with or without a byte order mark, within the limits of depth and
 * fields, and with each name once in its object. One reader would take the first of two values, another the
 * last. A number with a fraction stays one, however small the fraction is (`exactNumber`).
 * @param what the name of the text in messages
 * @throws DomainError INVALID_INPUT
 */
export function readJson(bytes: Uint8Array, what = 'The body'): unknown {
  return readAtOnce(bytes, what).json
}

/** Checks JSON like `readJson`, and returns its text, for a reader that takes only texts. */
export function readJsonText(bytes: Uint8Array, what: string): string {
  return readAtOnce(bytes, what).text
}

/** Reads JSON that may be large like `readJson`, without delaying other requests. */
export async function readLargeJson(bytes: Uint8Array, what = 'The body'): Promise<unknown> {
  const steps = readInSteps(bytes, what)
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value.json
    const turn = yieldIfBusy()
    if (turn) await turn
  }
}

function readAtOnce(bytes: Uint8Array, what: string): Read {
  const steps = readInSteps(bytes, what)
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value
}

/** JSON that was read, and a text that every reader of JSON reads the same way. */
interface Read {
  json: unknown
  text: string
}

const utf8 = new TextDecoder()

function* readInSteps(bytes: Uint8Array, what: string): Generator<undefined, Read> {
  const refuse = (problem: string): DomainError =>
    invalidInput([{ field: '', message: `${what} ${problem}` }])
  if (!isUtf8(bytes)) throw refuse('is not JSON in UTF-8')
  const intricacy = intricacyProblem(bytes)
  if (intricacy !== null) throw refuse(intricacy)
  const text = utf8.decode(bytes)
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw refuse('is not well-formed JSON')
  }
  const problem = yield* structureProblem(text)
  if (problem !== null) throw refuse(problem)
  if (!mayLoseFraction(text)) return { json, text }
  const exact = yield* withExactNumbers(text)
  return { json: JSON.parse(exact), text: exact }
}

/**
 * Most objects and lists in a body larger than `limits.bodyMaxBytes`. Choice: ten times the number in the
 * largest batch.
 */
const jsonOpeningsMax = 100_000

/**
 * Checks whether a large body has so many objects and lists that parsing its JSON would delay all other
 * requests. Brackets inside texts count as well.
 */
function intricacyProblem(body: Uint8Array): string | null {
  if (body.length <= limits.bodyMaxBytes) return null
  let openings = 0
  // A loop over the index takes a fifth of the time of one over the bytes.
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at]
    if (byte === 0x5b || byte === 0x7b) openings += 1
    if (openings > jsonOpeningsMax) return `has more than ${jsonOpeningsMax} objects and lists`
  }
  return null
}

/** The number of names, texts and brackets that one step of the search reads. */
const partsPerStep = 2_000

/**
 * Searches for problems that `JSON.parse` accepts: nesting that would exhaust the stack of later code; an
 * object that names a field twice; and too many fields, each of which takes longer to check than to send.
 * @param text well-formed JSON: in any other text the search for the end of a string takes quadratic time
 */
function* structureProblem(text: string): Generator<undefined, string | null> {
  let parts = 0
  /** The names of each object that is open here; null for a list. */
  const open: (Set<string> | null)[] = []
  for (const [token, name] of text.matchAll(/"((?:[^"\\]|\\.)*)"\s*:|"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    parts += 1
    if (parts % partsPerStep === 0) yield
    if (name !== undefined) {
      const names = open.at(-1)
      const plain = name.includes('\\') ? String(JSON.parse(`"${name}"`)) : name
      if (names?.has(plain)) return `names ${JSON.stringify(plain.slice(0, jsonNameLengthMax))} twice`
      names?.add(plain)
      if ((names?.size ?? 0) > limits.jsonNamesMax)
        return `has an object with more than ${limits.jsonNamesMax} fields`
    } else if (token === '{' || token === '[') {
      open.push(token === '{' ? new Set() : null)
      if (open.length > limits.jsonDepthMax) return `is nested deeper than ${limits.jsonDepthMax} levels`
    } else if (token === '}' || token === ']') open.pop()
  }
  return null
}

/**
 * Rewrites the numbers of which JavaScript would lose the fraction, so that `JSON.parse` reads them as
 * `exactNumber` does.
 * @param text well-formed JSON, as for `structureProblem`
 */
function* withExactNumbers(text: string): Generator<undefined, string> {
  let parts = 0
  let exact = ''
  let end = 0
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[-+.\de]*/gis)) {
    parts += 1
    if (parts % partsPerStep === 0) yield
    const number = token.startsWith('"') ? Number.NaN : exactNumber(token)
    if (Number.isInteger(number) || Number.isNaN(number) || number === Number(token)) continue
    exact += text.slice(end, index) + String(number)
    end = index + token.length
  }
  return exact + text.slice(end)
}

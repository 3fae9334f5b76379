import type { FieldProblem } from '../../shared/errors.ts'
import { snakeCase } from '../../shared/input.ts'
import { wordMeantBy } from '../../shared/near-spelling.ts'

/**
 * Names the field that was ignored for its spelling, in the problem of the field that is therefore missing:
 * `customer_phone is required: write customer_phone, not "customerPhone"`.
 * @param sent the JSON of the body, with the names as they were sent
 */
export function withMeantName(sent: unknown, problem: FieldProblem): FieldProblem {
  const { field, message } = problem
  const path = field.split(/\.|(?=\[\d)/)
  const name = snakeCase(path.pop() ?? '')
  const siblings = objectAt(sent, path)
  if (name === '' || (Object.hasOwn(siblings, name) && siblings[name] !== null)) return problem
  const wrong = Object.keys(siblings).find((given) => given !== name && wordMeantBy(given, [name]))
  if (wrong === undefined) return problem
  const hint = `write ${name}, not ${JSON.stringify(wrong)}`
  return { field, message: `${message}${message.includes(':') ? ';' : ':'} ${hint}` }
}

/** Returns the object at a place of the JSON (`recipients`, `[3]`); an empty one where no object is. */
function objectAt(sent: unknown, path: readonly string[]): Readonly<Record<string, unknown>> {
  let place = sent
  for (const part of path) {
    if (typeof place !== 'object' || place === null) return {}
    const key = part.startsWith('[') ? part.slice(1, -1) : snakeCase(part)
    place = Object.hasOwn(place, key) ? (place as Record<string, unknown>)[key] : undefined
  }
  const isObject = typeof place === 'object' && place !== null && !Array.isArray(place)
  return isObject ? (place as Record<string, unknown>) : {}
}

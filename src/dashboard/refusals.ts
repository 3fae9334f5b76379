import type { CombinedError } from '@urql/preact'
import type { RefusedFragment } from './operations.ts'
import type { Words } from './words/fr.ts'

/** Returns the refusal in the result of a mutation; null where it succeeded. */
export function refusalOf(result: object | null | undefined): RefusedFragment | null {
  return result && 'code' in result ? (result as RefusedFragment) : null
}

/** Writes a refusal for a person: in words of the dashboard, else with the service's own message. */
export function refusalText({ code, message, retryAfter }: RefusedFragment, words: Words): string {
  if (code === 'RATE_LIMITED' && retryAfter !== null) return words.waitSeconds(retryAfter)
  return words.refusals[code as keyof typeof words.refusals] ?? message
}

/** The code of the first refusal in an error; '' where there is none. */
export function codeOf(error: CombinedError | undefined): string {
  const code = error?.graphQLErrors[0]?.extensions['code']
  return typeof code === 'string' ? code : ''
}

/** Writes an error of a whole request for a person. */
export function errorText(error: CombinedError, words: Words): string {
  if (error.networkError !== undefined) return words.failure.network
  return words.refusals[codeOf(error) as keyof typeof words.refusals] ?? words.failure.unknown
}

/** Writes why a mutation failed, whether the request or its result says so; undefined where it succeeded. */
export function problemText(
  error: CombinedError | undefined,
  result: object | null | undefined,
  words: Words,
): string | undefined {
  if (error) return errorText(error, words)
  const refusal = refusalOf(result)
  return refusal ? refusalText(refusal, words) : undefined
}

import type { RestAnswer } from '../app.ts'

/** Which words of a refusal name the field. */
export interface Naming {
  /** The name of the field at the door that was asked. */
  field: string
  /** Matches what a scalar of GraphQL says of a value: the place is where the variable stands. */
  byScalar?: RegExp
  /** Codes that refuse a value without its field: a row that an id does not name, a wrong password. */
  codes?: readonly string[]
}

/**
 * Judges the answer to a request with an extreme value: `taken`, `refused` where a refusal below 500 names
 * the field, or else the whole answer after the value that was sent.
 */
export function verdict(
  { status, body }: Pick<RestAnswer, 'status' | 'body'>,
  { field, byScalar, codes = [] }: Naming,
  sent: string,
): string {
  const { errors, data, code } = body
  const said = JSON.stringify(body)
  const results = Object.values((data ?? {}) as Record<string, { code?: string } | null>)
  const refused = results.find((result) => result?.code)
  const isRefused = status >= 400 || errors !== undefined || refused
  if (!isRefused) return 'taken'
  const scalars = errors?.[0]?.extensions?.code === 'BAD_USER_INPUT'
  const given: unknown = code ?? refused?.code ?? errors?.[0]?.extensions?.code
  const words = scalars && byScalar ? byScalar : new RegExp(`\\b${field}\\b`)
  const isNamed = words.test(said) || codes.includes(String(given))
  return status < 500 && !said.includes('INTERNAL') && isNamed ? 'refused' : `${sent}: ${said}`
}

/** Whether the judgement is one of the two that a service may give. */
export const isVerdict = (given: string) => given === 'taken' || given === 'refused'

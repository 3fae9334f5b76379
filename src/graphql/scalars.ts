import { GraphQLError, GraphQLScalarType, Kind, type ValueNode } from 'graphql'
import { wholeFrancs } from '../shared/input.ts'
import { timeProblem } from '../shared/time.ts'

/** An amount in whole francs. JSON numbers are exact up to 2^53 - 1. */
export const Amount = new GraphQLScalarType<bigint, number>({
  name: 'Amount',
  description:
    'An amount in whole francs of the West African CFA franc (XOF), as a JSON number: 5000 means ' +
    '5,000 francs.',
  serialize: (value) => toSafeNumber(value, 'Amount'),
  parseValue: (value) => toBigint(value, wholeFrancs),
  parseLiteral: (node) => literal(node, wholeFrancs),
})

/** A whole number for ids and counts, which may be beyond 2^31. */
export const SafeInt = new GraphQLScalarType<bigint, number>({
  name: 'SafeInt',
  description: 'A whole number up to 2^53 - 1, as a JSON number.',
  serialize: (value) => toSafeNumber(value, 'SafeInt'),
  parseValue: (value) => toBigint(value, 'must be a whole number up to 2^53 - 1'),
  parseLiteral: (node) => literal(node, 'must be a whole number up to 2^53 - 1'),
})

/**
 * A time. As input it stays the text that the client gave, after a check: the verb reads it, because a date
 * means the first moment of its day at the start of a period, and the last one at the end.
 */
export const DateTime = new GraphQLScalarType<string | Date, string>({
  name: 'DateTime',
  description:
    'A moment in ISO 8601 format, in UTC, with milliseconds: 2026-01-31T10:00:00.000Z. As input, it may ' +
    'have another zone, and may be a date: 2026-01-31 is the first moment of this day in UTC, or, at the ' +
    'end of a period, the whole day.',
  serialize: (value) => new Date(value as Date | string).toISOString(),
  parseValue: (value) => toTime(value),
  parseLiteral: (node) => toTime(node.kind === Kind.STRING ? node.value : undefined),
})

/** A duration: milliseconds in the code, ISO 8601 for clients. */
export const Duration = new GraphQLScalarType<number, string>({
  name: 'Duration',
  description: 'A duration in ISO 8601 format, of weeks, days, hours, minutes and seconds: PT25H, P1DT30M.',
  serialize: (value) => `PT${Number(value) / 1_000}S`,
  parseValue: (value) => toMilliseconds(value),
  parseLiteral: (node) => toMilliseconds(node.kind === Kind.STRING ? node.value : undefined),
})

function toTime(value: unknown): string | Date {
  // REST runs the operations with times that it has read.
  if (value instanceof Date) return value
  const problem = typeof value === 'string' ? timeProblem(value) : 'must be the text of an ISO 8601 time'
  if (problem !== null) throw invalid(problem)
  return String(value)
}

function toSafeNumber(value: unknown, name: string): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) throw new TypeError(`${name} is beyond what a JSON number holds exactly`)
  return number
}

function toBigint(value: unknown, words: string): bigint {
  if (typeof value === 'bigint') return value
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
  throw invalid(words)
}

function literal(node: ValueNode, words: string): bigint {
  if (node.kind !== Kind.INT || !Number.isSafeInteger(Number(node.value))) throw invalid(words)
  return BigInt(node.value)
}

const span = /^P(?=.)(?:(\d{1,4})W)?(?:(\d{1,4})D)?(?:T(?=.)(?:(\d{1,5})H)?(?:(\d{1,6})M)?(?:(\d{1,8})S)?)?$/

function toMilliseconds(value: unknown): number {
  const parts =
    typeof value === 'string'
      ? span
          .exec(value)
          ?.slice(1)
          .map((part) => Number(part ?? 0))
      : undefined
  if (!parts) throw invalid('must be an ISO 8601 duration such as PT25H')
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts
  return ((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000
}

function invalid(words: string): GraphQLError {
  return new GraphQLError(words, { extensions: { code: 'BAD_USER_INPUT' } })
}

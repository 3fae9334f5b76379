import {
  getNamedType,
  getNullableType,
  type GraphQLField,
  type GraphQLInputType,
  isEnumType,
  isInputObjectType,
  isListType,
} from 'graphql'
import { schema } from '../../../src/resources/schema.ts'

/** A field of an input of the API that takes a text or a number. */
export interface InputField {
  /** The call and the place of the field in its arguments: `createBatch.input.recipients.0.name`. */
  name: string
  /** The place in the arguments; a zero stands for the first entry of a list. */
  path: readonly string[]
  scalar: string
  /** The most characters that its description states; null where it states none. */
  lengthMax: number | null
}

/** The scalars of times and durations have tests of their own; a boolean and an enum have no extremes. */
const tried: ReadonlySet<string> = new Set([
  'String',
  'ID',
  'Int',
  'Float',
  'SafeInt',
  'Amount',
  'JSONObject',
])

/** Returns every field of every argument of a root type that takes a text or a number. */
export function inputFields(kind: 'query' | 'mutation' | 'subscription'): InputField[] {
  return Object.values(rootFields(kind)).flatMap((field) =>
    field.args.flatMap(({ name, type, description }) =>
      fieldsWithin({ type, description, path: [name], call: field.name }),
    ),
  )
}

/** Returns the fields of a root type. */
export function rootFields(
  kind: 'query' | 'mutation' | 'subscription',
): Readonly<Record<string, GraphQLField<unknown, unknown>>> {
  const roots = {
    query: schema.getQueryType(),
    mutation: schema.getMutationType(),
    subscription: schema.getSubscriptionType(),
  }
  return roots[kind]?.getFields() ?? {}
}

interface Place {
  type: GraphQLInputType
  description?: string | null | undefined
  path: readonly string[]
  call: string
}

function fieldsWithin({ type: of, description, path, call }: Place): InputField[] {
  const type = getNullableType(of)
  if (isListType(type)) return fieldsWithin({ type: type.ofType, path: [...path, '0'], call })
  if (isInputObjectType(type))
    return Object.values(type.getFields()).flatMap((field) =>
      fieldsWithin({
        type: field.type,
        description: field.description,
        path: [...path, field.name],
        call,
      }),
    )
  const scalar = getNamedType(of).name
  const [, most] = /([\d,]+) characters/.exec(description ?? '') ?? []
  const lengthMax = most === undefined ? null : Number(most.replace(',', ''))
  return tried.has(scalar) ? [{ name: [call, ...path].join('.'), path, scalar, lengthMax }] : []
}

/** Returns a copy of the arguments with a value at a place. */
export function withValue(into: unknown, path: readonly string[], value: unknown): unknown {
  const [key, ...below] = path
  if (key === undefined) return value
  if (key === '0') {
    const [first, ...others] = (into ?? []) as unknown[]
    return [withValue(first, below, value), ...others]
  }
  const within = (into ?? {}) as Record<string, unknown>
  return { ...within, [key]: withValue(within[key], below, value) }
}

/** Translates an argument to the words of REST: names in snake case, and the words of enums. */
export function inRestWords(of: GraphQLInputType, value: unknown): unknown {
  const type = getNullableType(of)
  if (value === null || value === undefined) return value
  if (isListType(type) && Array.isArray(value)) return value.map((each) => inRestWords(type.ofType, each))
  if (isEnumType(type)) return typeof value === 'string' ? (type.getValue(value)?.value ?? value) : value
  if (!isInputObjectType(type) || typeof value !== 'object') return value
  const fields = type.getFields()
  return Object.fromEntries(
    Object.entries(value).map(([name, within]) => [
      snakeCase(name),
      fields[name] ? inRestWords(fields[name].type, within) : within,
    ]),
  )
}

export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

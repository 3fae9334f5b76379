import type { InputFieldMap } from '@pothos/core'
import { z } from 'zod'
import { invariant } from '../shared/invariant.ts'
import { readInput } from '../shared/input.ts'
import { builder } from './builder.ts'
import { enumOf } from './enums.ts'
import type { ReadsAs } from './keyed-input.ts'

// A verb reads its input with a zod object. This file makes the GraphQL type of the input from the same
// object.

type AnyType = z.core.$ZodType
type Fields = Parameters<typeof builder.inputType>[1]['fields']

const objects = new Map<AnyType, unknown>()

/**
 * Makes the GraphQL type of an input: one field for each field of the object, required where the object
 * requires it, with the default that the object states (`withDefault`).
 * @param words.fields the description of each field for clients
 * @param words.without the fields that only REST has
 * @param words.deprecated the reasons of the fields that are deprecated
 * @param words.isOneOf true if a client gives exactly one of the fields
 */
export function inputOf<Input extends z.ZodType<unknown, object>>(
  name: string,
  input: Input,
  words: {
    description: string
    fields?: Readonly<Record<string, string>>
    without?: readonly string[]
    deprecated?: Readonly<Record<string, string>>
    isOneOf?: true
  },
) {
  const object = objectOf(input)
  const { description, fields = {}, without = [], deprecated = {}, isOneOf } = words
  const unknown = [...Object.keys({ ...fields, ...deprecated }), ...without].filter(
    (field) => !(field in object.shape),
  )
  invariant(unknown.length === 0, `${name} has no ${unknown.join()}`)
  const ref = builder.inputRef<z.input<Input>, false>(name)
  objects.set(object, ref)
  const made = (t: Parameters<Fields>[0]): InputFieldMap =>
    Object.fromEntries(
      Object.entries(object.shape)
        .filter(([field]) => !without.includes(field))
        .map(([field, type]) => [
          field,
          t.field({
            type: typeOf(type, `${name}.${field}`) as never,
            required: !z.safeParse(type, undefined).success as never,
            description: fields[field],
            defaultValue: z.globalRegistry.get(type)?.['default'],
            deprecationReason: deprecated[field],
          } as never),
        ]),
    )
  const readsAs: ReadsAs = (given) => readInput(input, given)
  return ref.implement({ description, fields: made as never, isOneOf, extensions: { readsAs } } as never)
}

/** Returns the reason of a deprecation: what replaces the input, and the day from which it may be missing. */
export const replacedBy = (name: string) => `Use \`${name}\`. Removed from 2028-01-01.`

/**
 * Returns the description of the input of a change, with the rule of all changes.
 * @param route the same change in REST
 * @param nullInRest which nulls REST takes as fields that are left out
 */
export const changeWords = (object: string, route: string, nullInRest = 'such a null') =>
  `Changes of ${object}. A field that is left out stays as it is. Null removes a value that may be ` +
  `missing; for any other field it is refused. Same as ${route} in REST, where ${nullInRest} changes nothing.`

function objectOf(type: AnyType): z.ZodObject {
  if (type instanceof z.ZodPipe) return objectOf(type.in)
  invariant(type instanceof z.ZodObject, 'an input is an object')
  return type
}

/**
 * Returns the GraphQL type of a zod type. `meta({ graphql })` states the cases that zod cannot express: a
 * scalar, the words of an enum, or another zod type where the verb reads the field by itself.
 */
function typeOf(type: AnyType, where: string): unknown {
  const stated = z.globalRegistry.get(type)?.['graphql']
  if (Array.isArray(stated)) return enumOf(stated.map(String), where)
  if (stated instanceof z.ZodType) return typeOf(stated, where)
  if (stated !== undefined) return stated
  if (type instanceof z.ZodOptional || type instanceof z.ZodNullable) return typeOf(type.unwrap(), where)
  if (type instanceof z.ZodPipe) return typeOf(type.in instanceof z.ZodTransform ? type.out : type.in, where)
  if (type instanceof z.ZodUnion) return typeOf(type.options[0] as AnyType, where)
  if (type instanceof z.ZodArray) return [typeOf(type.element, where)]
  if (type instanceof z.ZodEnum) return enumOf(type.options.map(String), where)
  if (type instanceof z.ZodObject) return objects.get(type)
  for (const [kind, scalar] of scalars) if (type instanceof kind) return scalar
  throw new Error(`${where}: state the GraphQL type by meta({ graphql })`)
}

const scalars = [
  [z.ZodStringFormat, 'String'],
  [z.ZodString, 'String'],
  [z.ZodLiteral, 'String'],
  [z.ZodBoolean, 'Boolean'],
  [z.ZodNumber, 'Int'],
  [z.ZodBigInt, 'Amount'],
  [z.ZodDate, 'DateTime'],
] as const

import { readFileSync } from 'node:fs'
import {
  buildSchema,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isSpecifiedScalarType,
} from 'graphql'
import { expect, test } from 'vitest'

/** A description shorter than this many words explains nothing beyond the name. */
const wordsMin = 2

/** A description that opens with one of these is a clause without its main verb. */
const openings =
  'what|who|whose|whom|of|those|where|whether|when|why|how|that|which|as|by which|since when|under which'
const clause = new RegExp(String.raw`^(?:${openings})\b`, 'i')

/** The coordinates of a schema, each with its description: `Type`, `Type.field`, `Type.field(argument)`. */
function descriptionsOf(schema: GraphQLSchema): [name: string, description: string | null | undefined][] {
  return Object.values(schema.getTypeMap())
    .filter((type) => !type.name.startsWith('__') && !isSpecifiedScalarType(type))
    .flatMap((type): [string, string | null | undefined][] => {
      const problems: [string, string | null | undefined] = [type.name, type.description]
      if (isEnumType(type))
        return [
          problems,
          ...type.getValues().map(({ name, description }) => member(type.name, name, description)),
        ]
      if (isInputObjectType(type))
        return [
          problems,
          ...Object.values(type.getFields()).map(({ name, description }) =>
            member(type.name, name, description),
          ),
        ]
      if (!isObjectType(type) && !isInterfaceType(type)) return [problems]
      const fields = Object.values(type.getFields()).flatMap((field) => [
        member(type.name, field.name, field.description),
        ...field.args.map(({ name, description }) =>
          member(type.name, `${field.name}(${name})`, description),
        ),
      ])
      return [problems, ...fields]
    })
}

function member(type: string, name: string, description: string | null | undefined) {
  return [`${type}.${name}`, description] as [string, string | null | undefined]
}

/** The descriptions that a client cannot use, each with the reason. */
function problemsOf(schema: GraphQLSchema): string[] {
  return descriptionsOf(schema).flatMap(([name, description]) => {
    const text = description?.trim() ?? ''
    const words = text.match(/[\p{L}\p{N}'`_-]+/gu) ?? []
    const problems = name.split('.').at(-1)?.replace(/\(.*/, '') ?? ''
    const plain = (of: string) => of.replaceAll(/[^\p{L}\p{N}]|\b(?:the|an?)\b/giu, '').toLowerCase()
    if (text === '') return [`${name}: no description`]
    if (clause.test(text)) return [`${name}: opens with a clause: ${text}`]
    if (plain(text) === plain(problems)) return [`${name}: repeats the name: ${text}`]
    if (words.length < wordsMin) return [`${name}: too short: ${text}`]
    return /[.:!?]$/.test(text) ? [] : [`${name}: is no sentence: ${text}`]
  })
}

test('schema.graphql describes everything in sentences', () => {
  const schema = buildSchema(readFileSync('schema.graphql', 'utf8'))
  expect(descriptionsOf(schema).length).toBeGreaterThan(1_000)
  expect(problemsOf(schema)).toEqual([])
})

/** The defaults that are no constants, by the words with which a description states them. */
const changingDefaults =
  /^(?:now|never|no limit|only new|all|the (?:service|caller|limits)|that of the|of the teams)\b/

/** The arguments and input fields whose description states a constant as their default. */
function statedDefaults(schema: GraphQLSchema): string[] {
  const inputs = Object.values(schema.getTypeMap()).flatMap(
    (type): { name: string; description?: string | null | undefined }[] => {
      if (isInputObjectType(type)) return Object.values(type.getFields())
      return isObjectType(type) ? Object.values(type.getFields()).flatMap(({ args }) => [...args]) : []
    },
  )
  return inputs.flatMap(({ name, description }) => {
    const stated = /(?:\bDefault: |, which is the )(.*)/su.exec(description ?? '')?.[1]
    return stated === undefined || changingDefaults.test(stated) ? [] : [`${name}: ${stated}`]
  })
}

test('no description states a constant as a default: the schema has it as `= value`', () => {
  expect(statedDefaults(buildSchema(readFileSync('schema.graphql', 'utf8')))).toEqual([])
  const planted =
    'type Query { a("Page size. Default: 20." first: Int, "The end. Default: now." to: Int): Int }'
  expect(statedDefaults(buildSchema(planted))).toEqual(['first: 20.'])
})

test.each([
  ['a type', 'type Query { a: Int }', 'Query: no description'],
  ['a field', '"A type of it." type Query { a: Int }', 'Query.a: no description'],
  [
    'an argument',
    '"A type of it." type Query { "The field a." a(b: Int): Int }',
    'Query.a(b): no description',
  ],
  ['a value', '"Kinds of it." enum E { A }', 'E.A: no description'],
  ['an input field', '"An input of it." input I { a: Int }', 'I.a: no description'],
  ['a union', '"Some type." type A { "A number." a: Int } union U = A', 'U: no description'],
  ['a clause', '"What a client may see." enum E { "A value of it." A }', 'E: opens with a clause'],
  ['another clause', '"Kinds of it." enum E { "Whose turn has come." A }', 'E.A: opens with a clause'],
  ['a short word', '"Kinds." enum E { "A value of it." A }', 'E: too short'],
  [
    'the name again',
    '"Kinds of it." enum PayoutKind { "The bank transfer." BANK_TRANSFER }',
    'repeats the name',
  ],
])('a planted gap is found: %s', (_what, sdl, found) => {
  expect(problemsOf(buildSchema(sdl)).join('\n')).toContain(found)
})

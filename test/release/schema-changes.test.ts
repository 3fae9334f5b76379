import { buildSchema } from 'graphql'
import { expect, test } from 'vitest'
import { shortDeprecations, unnamedChanges } from './schema-changes.ts'

const before = buildSchema(`type Query {
  kept(of: Int): Int! old: Int @deprecated(reason: "Use kept. Removed from 2027-03-01.")
  gone: Int colour: Colour
} enum Colour { RED BLUE @deprecated(reason: "Not printed. Removed from 2027-03-01.") }`)

test.each([
  ['a removed field', 'kept(of: Int): Int! old: Int', ['Query.gone']],
  ['an argument that became required', 'kept(of: Int!): Int! old: Int gone: Int', ['kept(of:)']],
  ['a field that may be null now', 'kept(of: Int): Int old: Int gone: Int', ['Query.kept']],
  ['a new field', 'kept(of: Int): Int! old: Int gone: Int fresh: Int', []],
])('%s is found, or nothing where nothing breaks', (_what, fields, broken) => {
  const after = buildSchema(`type Query { ${fields} colour: Colour } enum Colour { RED BLUE }`)
  const found = unnamedChanges(before, after, { named: new Set(), today: '2026-11-24' })
  expect(found).toEqual(broken.map((name) => expect.stringContaining(name)))
})

test('deprecated members are removed from their day on, and changes that are named are allowed', () => {
  const after = buildSchema('type Query { kept(of: Int): Int! colour: Colour } enum Colour { RED }')
  const changes = (day: string, ...named: string[]) =>
    unnamedChanges(before, after, { named: new Set(named), today: day })
  expect(changes('2027-02-28')).toHaveLength(3)
  expect(changes('2027-03-01')).toEqual([expect.stringContaining('Query.gone')])
  expect(changes('2027-03-01', 'gone')).toEqual([])
  expect(changes('2027-03-01', 'Query.gone')).toEqual([])
})

test.each([
  ['no day', 'Use kept.', ['Query.kept']],
  ['too soon', 'Use other. Removed from 2027-11-23.', ['Query.kept']],
  ['a year', 'Use other. Removed from 2027-11-24.', []],
])('a deprecation with %s', (_what, reason, short) => {
  const after = buildSchema(`type Query { kept: Int @deprecated(reason: "${reason}") }`)
  expect(shortDeprecations(buildSchema('type Query { kept: Int }'), after, '2026-11-24')).toEqual(short)
})

test('a deprecation that the last release had keeps its day', () => {
  expect(shortDeprecations(before, before, '2026-11-24')).toEqual([])
})

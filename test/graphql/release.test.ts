import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildSchema } from 'graphql'
import { expect, test } from 'vitest'
import { shortDeprecations, unnamedChanges } from '../kit/schema-changes.ts'
import { schema } from '../../src/resources/schema.ts'

// Programs that were written for the last release go on, or the changelog names what breaks them.

const read = (path: string) => readFileSync(join(import.meta.dirname, path), 'utf8')
// A removal is allowed from its day on, and stays allowed.
const today = new Date().toISOString().slice(0, 10)
/** The day of the last release. */
const { day: released } = JSON.parse(read('../database/release.json')) as { day: string }

/** The names in backticks below a heading of the changelog. */
function namedBelow(heading: string): Set<string> {
  const [, below = ''] = read('../../src/docs/changelog.md').split(`### ${heading}\n`)
  const [section = ''] = below.split(/^##/m)
  return new Set(Array.from(section.matchAll(/`([^`]+)`/g), ([, name = '']) => name))
}

test('the changelog names each change that breaks programs written for the last release', () => {
  const named = namedBelow('Breaking changes of the GraphQL schema')
  expect(unnamedChanges(buildSchema(read('release.graphql')), schema, { named, today })).toEqual([])
})

// `npm run release:record` counts again, from the day of the next release.
test('a deprecated member names a day of removal, at least twelve months after the last release', () => {
  expect(shortDeprecations(buildSchema(read('release.graphql')), schema, released)).toEqual([])
})

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

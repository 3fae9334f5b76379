import { getIntrospectionQuery, type GraphQLError } from 'graphql'
import { afterAll, describe, expect, test } from 'vitest'
import type { Context } from '../../src/context.ts'
import { createOperations } from '../../src/graphql/operation.ts'
import { limits } from '../../src/shared/limits.ts'
import { createFixture } from './fixtures.ts'

const fixture = createFixture('sandbox')
afterAll(() => fixture.close())
const operations = createOperations(fixture.schema)
const ctx = { ...fixture.services, actor: null, requestId: 'r' } as Context

/** @returns the cost, or the first error */
function judge(query: string, variables: object = {}): number | GraphQLError {
  const read = operations.read({ query, variables }, ctx)
  return Array.isArray(read) ? (read[0] as GraphQLError) : read.cost
}
const refused = (message: RegExp, code = 'COST_EXCEEDED') =>
  expect.objectContaining({ message: expect.stringMatching(message), extensions: { code, requestId: 'r' } })

const times = (count: number, text: string) => Array.from({ length: count }, () => text).join(' ')
/** Two levels for each time, and the three around them. */
const nested = (count: number, end: string, open = '{ recipients(first: 1) { nodes ') =>
  `{ batches(first: 1) { nodes ${open.repeat(count)}${end}${' } }'.repeat(count + 1)}`

/** Each fragment uses the next one twice: 2 to the power of 16 selections in 341 bytes. */
function fragmentBomb(): string {
  const letters = 'abcdefghijkl'.split('')
  const fragments = letters.map((letter, index) => {
    const next = letters[index + 1]
    return `fragment ${letter} on Query{${next ? `...${next} ...${next}` : 'hello'}}`
  })
  return `{...a ...a}${fragments.join('')}`
}

describe('an attack is refused at once', () => {
  const attacks: [string, string, RegExp][] = [
    ['fragments in fragments', fragmentBomb(), /unfolds into more than 5000 selections/],
    ['aliases', `{ ${Array.from({ length: 200 }, (_, n) => `a${n}: hello`).join(' ')} }`, /30 aliases/],
    [
      'aliases in fragments',
      `{ ${times(16, '...f')} } fragment f on Query { a: hello b: hello }`,
      /30 aliases/,
    ],
    ['depth', `{ me ${'{ parent '.repeat(200)}{ name }${' }'.repeat(200)} }`, /12 levels deep/],
    ['directives', `{ hello ${times(600, '@a')} }`, /20 directives/],
    ['directives of the operation', `query ${times(600, '@a')} { hello }`, /20 directives/],
  ]
  test.each(attacks)('%s', (_name, query, message) => {
    const began = performance.now()
    expect(judge(query)).toEqual(refused(message))
    expect(performance.now() - began).toBeLessThan(50)
  })

  test('10,000 equal fields, 1,900 equal fields, and circles of fragments', () => {
    const began = performance.now()
    expect(judge(`{ ${times(10_000, 'hello')} }`)).toEqual(
      refused(/more than 2000 tokens/, 'GRAPHQL_PARSE_FAILED'),
    )
    expect(judge(`{ ${times(1_900, 'hello')} }`)).toEqual(refused(/aborted/, 'GRAPHQL_VALIDATION_FAILED'))
    const circle = '{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }'
    expect(judge(circle)).toEqual(refused(/within itself/, 'GRAPHQL_VALIDATION_FAILED'))
    expect(performance.now() - began).toBeLessThan(500)
  })

  test('lists within lists of the introspection, and the schema many times over', () => {
    const lists =
      '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }'
    expect(judge(lists)).toEqual(refused(/Maximum introspection depth/, 'GRAPHQL_VALIDATION_FAILED'))
    const schemas = Array.from({ length: 6 }, (_, n) => `s${n}: __schema { types { name } }`).join(' ')
    expect(judge(`{ ${schemas} }`)).toMatchObject({ extensions: { cost: { requested: 12_000 } } })
  })
})

describe('the cost is the number of objects', () => {
  test.each([
    ['{ hello }', 0],
    ['{ batches { totalCount pageInfo { hasNextPage } } }', 0],
    ['{ batches { nodes { id } } }', limits.pageSizeDefault],
    ['{ batches(first: 7) { edges { node { id } } } }', 7],
    ['{ batches(last: 7) { nodes { id } } }', 7],
    ['{ batches(first: 7) { nodes { recipients(first: 3) { edges { node { id } } } } } }', 7 + 21],
    ['{ ...f } fragment f on Query { batches(first: 7) { ... on BatchConnection { nodes { id } } } }', 7],
    ['{ nodes(ids: ["1", "2", "3"]) { recipients(first: 5) { nodes { id } } } }', 3 + 15],
    ['{ batches(first: 100000) { nodes { id } } }', limits.pageSizeMax],
    ['{ batches(first: -1) { nodes { id } } }', limits.pageSizeMax],
  ])('%s', (query, cost) => {
    expect(judge(query)).toBe(cost)
  })

  test('with variables, their defaults and none: each request is judged by its own', () => {
    const query =
      'query ($n: Int = 5, $m: Int) ' +
      '{ batches(first: $n) { nodes { recipients(first: $m) { nodes { id } } } } }'
    expect(judge(query)).toBe(5 + 5 * limits.pageSizeDefault)
    expect(judge(query, { n: 2, m: 3 })).toBe(2 + 6)
    expect(judge(query, { n: 100, m: 100 })).toMatchObject({
      extensions: { code: 'COST_EXCEEDED', cost: { requested: 10_100, limit: limits.graphqlCostMax } },
    })
    expect(judge(query, { n: 2, m: 3 })).toBe(2 + 6)
  })

  test('tools may read the schema', () => {
    expect(judge(getIntrospectionQuery())).toBe(limits.graphqlCostMax / 5)
  })
})

test('the deepest document that is allowed passes, one level more does not', () => {
  expect(judge(nested(4, '{ recipients(first: 1) { totalCount } }'))).toBe(5)
  expect(judge(nested(5, '{ id }'))).toEqual(refused(/levels deep/))
})

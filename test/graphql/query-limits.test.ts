import { getIntrospectionQuery, type GraphQLError } from 'graphql'
import { afterAll, describe, expect, test } from 'vitest'
import type { Context } from '../../src/context.ts'
import { checkAnswer } from '../../src/graphql/answer-size.ts'
import type { CheckedOperation } from '../../src/graphql/checked-operation.ts'
import { createOperations } from '../../src/graphql/operation.ts'
import { limits } from '../../src/shared/limits.ts'
import { createFixture, testLimits } from '../kit/graphql.ts'

const fixture = createFixture('sandbox')
afterAll(() => fixture.close())
const operations = createOperations(fixture.schema)
const ctx = {
  ...fixture.services,
  requestLimits: testLimits(1_000_000_000),
  actor: null,
  requestId: 'r',
  responseHeaders: new Map(),
} as Context

/** @returns the cost, or the first error */
async function check(query: string, variables: object = {}): Promise<number | GraphQLError> {
  const read = await operations.read({ query, variables }, ctx)
  return Array.isArray(read) ? (read[0] as GraphQLError) : read.cost
}
const refused = (message: RegExp, code = 'COST_EXCEEDED') =>
  expect.objectContaining({ message: expect.stringMatching(message), extensions: { code, requestId: 'r' } })

const times = (count: number, text: string) => Array.from({ length: count }, () => text).join(' ')
/** Two levels for each repetition, and the three around them. */
const nested = (count: number, end: string, open = '{ recipients(first: 1) { nodes ') =>
  `{ batches(first: 1) { nodes ${open.repeat(count)}${end}${' } }'.repeat(count + 1)}`

describe('a document is bounded', () => {
  const bounds: [string, string, RegExp][] = [
    [
      'root aliases',
      `{ ${Array.from({ length: 21 }, (_, n) => `a${n}: hello`).join(' ')} }`,
      /20 aliases at/,
    ],
    [
      'aliases, in fragments too',
      `{ ${times(11, 'me { ...f }')} } fragment f on Merchant { a: name b: name c: name }`,
      /30 aliases/,
    ],
    ['directives', `{ hello ${times(600, '@a')} }`, /20 directives/],
    ['directives of the operation', `query ${times(600, '@a')} { hello }`, /20 directives/],
    ['directives of a fragment that is used', `{ ...f ${times(20, '@a')} ...g @a }`, /20 directives/],
    ['fields side by side', `{ ${times(201, 'hello')} }`, /200 fields side by side/],
    ['equal parents', `{ ${times(15, `me { ${times(14, 'name')} }`)} }`, /200 fields side by side/],
    [
      'all selections',
      `${times(60, 'query { ...f }')} fragment f on Query { ${times(100, 'hello')} }`,
      /5000 fields and fragments/,
    ],
  ]
  test.each(bounds)('%s', async (_name, query, message) => {
    expect(await check(query)).toEqual(refused(message))
  })

  test('the widest lawful document is checked', async () => {
    expect(await check(`{ ${times(190, `hello(name: "${'x'.repeat(300)}")`)} }`)).toBe(0)
  })

  test('the introspection with lists within lists, or the schema many times over', async () => {
    const lists =
      '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }'
    expect(await check(lists)).toEqual(refused(/Maximum introspection depth/, 'GRAPHQL_VALIDATION_FAILED'))
    const schemas = Array.from({ length: 6 }, (_, n) => `s${n}: __schema { types { name } }`).join(' ')
    expect(await check(`{ ${schemas} }`)).toMatchObject({ extensions: { cost: { requested: 12_000 } } })
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
  ])('%s', async (query, cost) => {
    expect(await check(query)).toBe(cost)
  })

  test('each request is counted by its own variables, with their defaults or none', async () => {
    const query =
      'query ($n: Int = 5, $m: Int) ' +
      '{ batches(first: $n) { nodes { recipients(first: $m) { nodes { id } } } } }'
    expect(await check(query)).toBe(5 + 5 * limits.pageSizeDefault)
    expect(await check(query, { n: 2, m: 3 })).toBe(2 + 6)
    expect(await check(query, { n: 100, m: 100 })).toMatchObject({
      extensions: { code: 'COST_EXCEEDED', cost: { requested: 10_100, limit: limits.graphqlCostMax } },
    })
    expect(await check(query, { n: 2, m: 3 })).toBe(2 + 6)
  })

  test('tools may read the schema', async () => {
    expect(await check(getIntrospectionQuery())).toBe(limits.graphqlCostMax / 5)
  })
})

test('the deepest document that is allowed passes, one level more does not', async () => {
  expect(await check(nested(4, '{ recipients(first: 1) { totalCount } }'))).toBe(5)
  expect(await check(nested(5, '{ id }'))).toEqual(refused(/levels deep/))
})

describe('a merchant has a number of objects per minute', () => {
  const requestLimits = testLimits()
  const contextOf = (merchantId: number | null, clientAddress = '192.0.2.1', tokenId = `t${merchantId}`) => {
    const actor = merchantId && { merchantId, tokenId }
    return { ...ctx, requestLimits, actor, clientAddress, responseHeaders: new Map() } as Context
  }
  const read = (caller: Context, first = 99) =>
    operations.read(
      { query: `{ batches(first: 100) { nodes { recipients(first: ${first}) { nodes { id } } } } }` },
      caller,
    )

  const untilRefused = async (caller: Context) =>
    (await Promise.all(Array.from({ length: 30 }, () => read(caller)))).find((answer) =>
      Array.isArray(answer),
    )

  test('a query over it is refused, with the time to wait; other merchants go on', async () => {
    const shop = contextOf(1)
    const remainders: unknown[] = []
    for (let count = 0; count < 7; count += 1)
      remainders.push(((await read(shop)) as CheckedOperation).remaining)
    expect(remainders).toEqual(remainders.toSorted((a, b) => Number(b) - Number(a)))
    expect(Number(remainders.at(-1))).toBeLessThan(50_000)
    const refusal = await untilRefused(shop)
    expect(refusal).toMatchObject([
      { extensions: { code: 'RATE_LIMITED', retryAfter: expect.any(Number), cost: { requested: 10_000 } } },
    ])
    expect(shop.responseHeaders.get('Retry-After')).toMatch(/^[1-9]\d?$/)
    // The merchant has a little left by another token.
    const other = contextOf(1, undefined, 'another')
    expect(((await read(other)) as CheckedOperation).remaining).toBeLessThan(20_000)
    expect(await untilRefused(other)).toMatchObject([{ extensions: { code: 'RATE_LIMITED' } }])
    expect(await read(contextOf(2))).toMatchObject({ cost: 10_000 })
    expect(await read(contextOf(null))).toMatchObject({ cost: 10_000 })
  })

  test('a caller without a token is counted by its address', async () => {
    const caller = contextOf(null, '192.0.2.7')
    expect(await untilRefused(caller)).toMatchObject([{ extensions: { code: 'RATE_LIMITED' } }])
    expect(await read(contextOf(null, '192.0.2.8'))).toMatchObject({ cost: 10_000 })
  })
})

test('an answer that is too large is not sent', async () => {
  const id = 'x'.repeat(90_000)
  const names = Array.from({ length: 29 }, (_, n) => `a${n}: id`).join(' ')
  const query = `query ($ids: [ID!]!) { nodes(ids: $ids) { id ${names} } }`
  const run = async (ids: string[]) =>
    operations.run((await operations.read({ query, variables: { ids } }, ctx)) as never)
  expect(await run(['1'])).toMatchObject({ data: { nodes: [{ id: '1' }] } })
  const refusal = await run([id])
  expect(refusal).toMatchObject({ errors: [{ extensions: { code: 'COST_EXCEEDED' } }] })
  expect(refusal).not.toHaveProperty('data')
  expect(() => checkAnswer({ list: Array.from({ length: 400_000 }, () => 1_000_000) })).toThrow(/2 MB/)
  expect(() => checkAnswer({ list: [null, true, { text: 'x'.repeat(2_000_000) }] })).not.toThrow()
})

import { buildSchema, type GraphQLNamedType, type GraphQLObjectType, parse } from 'graphql'
import { describe, expect, test } from 'vitest'
import type { Actor } from '../../src/identity/actor.ts'
import type { Scope } from '../../src/identity/scopes.ts'
import { type AccessRule, accessPlan, checkAccess } from '../../src/graphql/access-plan.ts'

// What an operation demands before any of it runs.

const schema = buildSchema(/* GraphQL */ `
  type Query {
    open: String, mine: String, paid: String, both: String, card: Card, either: Either, face: Face
  }
  interface Face { id: ID }
  type Card implements Face { id: ID, pin: String, open: String }
  type Note { text: String }
  union Either = Card | Note
  type Mutation { pay: String, greet: String }
`)
const rules: Record<string, AccessRule> = {
  'Query.open': 'public',
  'Query.mine': 'authenticated',
  'Query.paid': ['pay'],
  'Query.both': ['pay', 'deposit'],
  'Query.card': 'public',
  'Query.either': 'public',
  'Query.face': 'public',
  'Mutation.pay': ['pay'],
  'Mutation.greet': 'public',
  'Card.pin': ['team'],
  Card: ['balance'],
}
for (const [coordinate, accessRule] of Object.entries(rules)) {
  const [name = '', fieldName] = coordinate.split('.')
  const type = schema.getType(name) as GraphQLNamedType
  const field = fieldName && (type as GraphQLObjectType).getFields()[fieldName]
  Object.assign((field || type).extensions, { accessRule, movesMoney: coordinate === 'Mutation.pay' })
}

/** `ok`, or the code, with the scopes that are asked for. */
function judge(
  query: string,
  scopes: readonly Scope[] | null,
  variables: object = {},
  name?: string,
): string {
  const actor = scopes && ({ scopes: new Set(scopes) } as unknown as Actor)
  try {
    checkAccess(accessPlan(schema, parse(query), name), actor, variables as Record<string, unknown>)
    return 'ok'
  } catch (error) {
    const { code, requiredScopes = [] } = (
      error as { extensions: { code: string; requiredScopes?: string[] } }
    ).extensions
    return [code, ...requiredScopes].join(' ')
  }
}

describe('nobody, and somebody without and with the scope', () => {
  test.each<[string, string, string, string, Scope[]]>([
    ['{ open }', 'ok', 'ok', 'ok', []],
    ['{ mine }', 'UNAUTHENTICATED', 'ok', 'ok', []],
    ['{ paid }', 'UNAUTHENTICATED', 'FORBIDDEN pay', 'ok', ['pay']],
    ['{ open a: paid }', 'UNAUTHENTICATED', 'FORBIDDEN pay', 'ok', ['pay']],
    ['{ both }', 'UNAUTHENTICATED', 'FORBIDDEN pay deposit', 'ok', ['pay', 'deposit']],
    [
      '{ ...F } fragment F on Query { ...G } fragment G on Query { paid }',
      'UNAUTHENTICATED',
      'FORBIDDEN pay',
      'ok',
      ['pay'],
    ],
    ['{ ... { ... on Query { paid } } }', 'UNAUTHENTICATED', 'FORBIDDEN pay', 'ok', ['pay']],
    ['{ card { open } }', 'UNAUTHENTICATED', 'FORBIDDEN balance', 'ok', ['balance']],
    ['{ card { __typename } }', 'UNAUTHENTICATED', 'FORBIDDEN balance', 'ok', ['balance']],
    ['{ either { ... on Card { open } } }', 'UNAUTHENTICATED', 'FORBIDDEN balance', 'ok', ['balance']],
    ['{ either { ... on Note { text } } }', 'ok', 'ok', 'ok', []],
    ['{ face { ... on Card { __typename } } }', 'UNAUTHENTICATED', 'FORBIDDEN balance', 'ok', ['balance']],
    ['{ __schema { types { name } } __typename }', 'ok', 'ok', 'ok', []],
  ])('%s', (query, nobody, without, withAll, scopes) => {
    expect([judge(query, null), judge(query, ['webhooks']), judge(query, scopes)]).toEqual([
      nobody,
      without,
      withAll,
    ])
  })

  test('one of two scopes is not both, and a field asks for more than its type', () => {
    expect(judge('{ both }', ['deposit'])).toBe('FORBIDDEN pay deposit')
    expect(judge('{ card { pin } }', ['balance'])).toBe('FORBIDDEN team')
    expect(judge('{ card { pin } }', ['balance', 'team'])).toBe('ok')
  })
})

describe('what @include and @skip leave out demands nothing', () => {
  test.each<[string, object, string]>([
    ['{ open paid @include(if: false) }', {}, 'ok'],
    ['{ open paid @skip(if: true) }', {}, 'ok'],
    ['{ paid @include(if: true) @skip(if: false) }', {}, 'UNAUTHENTICATED'],
    ['query ($a: Boolean!) { open paid @include(if: $a) }', { a: false }, 'ok'],
    ['query ($a: Boolean!) { open paid @include(if: $a) }', { a: true }, 'UNAUTHENTICATED'],
    ['query ($a: Boolean!) { open paid @skip(if: $a) }', { a: true }, 'ok'],
    ['query ($a: Boolean!) { open ...F @include(if: $a) } fragment F on Query { paid }', { a: false }, 'ok'],
    [
      'query ($a: Boolean!, $b: Boolean!) { ... @include(if: $a) { paid @skip(if: $b) } open }',
      { a: true, b: true },
      'ok',
    ],
    ['query ($a: Boolean!) { paid @include(if: $a) again: paid open }', { a: false }, 'UNAUTHENTICATED'],
    // What is not known to be left out counts.
    ['query ($a: Boolean = false) { open paid @include(if: $a) }', {}, 'UNAUTHENTICATED'],
    ['query ($a: Boolean!) { open paid @include(if: $a) }', { a: 'false' }, 'UNAUTHENTICATED'],
  ])('%s %o', (query, variables, verdict) => {
    expect(judge(query, null, variables)).toBe(verdict)
  })
})

test('of several operations only the one that is named counts', () => {
  const document = 'query a { open } query b { paid }'
  expect([judge(document, null, {}, 'a'), judge(document, null, {}, 'b')]).toEqual(['ok', 'UNAUTHENTICATED'])
  expect([judge(document, null), judge(document, null, {}, 'c')]).toEqual([
    'BAD_USER_INPUT',
    'BAD_USER_INPUT',
  ])
})

test.each([
  ['mutation { pay greet }', 'ok'],
  ['mutation { a: pay b: pay }', 'ONE_PAYMENT_PER_OPERATION'],
  ['mutation { pay ...F } fragment F on Mutation { b: pay }', 'ONE_PAYMENT_PER_OPERATION'],
  ['mutation { pay ... on Mutation { b: pay } }', 'ONE_PAYMENT_PER_OPERATION'],
])('money moves once: %s', (query, verdict) => {
  expect(judge(query, ['pay'])).toBe(verdict)
})

test('a plan is made once per document and operation', () => {
  const document = parse('query a { open } query b { paid }')
  expect(accessPlan(schema, document, 'a')).toBe(accessPlan(schema, document, 'a'))
  expect(accessPlan(schema, document, 'b')).not.toBe(accessPlan(schema, document, 'a'))
})

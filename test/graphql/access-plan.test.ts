import { buildSchema, type GraphQLNamedType, type GraphQLObjectType, parse } from 'graphql'
import { describe, expect, test } from 'vitest'
import type { Actor } from '../../src/identity/callers/actor.ts'
import type { Scope } from '../../src/identity/callers/scopes.ts'
import { type AccessRule, accessPlan, checkAccess } from '../../src/graphql/access-plan.ts'

// The scopes that an operation demands before any of its resolvers runs.

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

/** `ok`, or the code, with the scopes that are demanded. */
function verdictOf(
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

describe('callers without a token, without the scope and with the scope', () => {
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
  ])('%s', (query, anonymous, without, withAll, scopes) => {
    expect([verdictOf(query, null), verdictOf(query, ['webhooks']), verdictOf(query, scopes)]).toEqual([
      anonymous,
      without,
      withAll,
    ])
  })

  test('one of two scopes is not enough, and a field may demand more than its type', () => {
    expect(verdictOf('{ both }', ['deposit'])).toBe('FORBIDDEN pay deposit')
    expect(verdictOf('{ card { pin } }', ['balance'])).toBe('FORBIDDEN team')
    expect(verdictOf('{ card { pin } }', ['balance', 'team'])).toBe('ok')
  })
})

describe('fields that @include and @skip leave out demand no scope', () => {
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
    // A field counts unless the directive surely leaves it out.
    ['query ($a: Boolean = false) { open paid @include(if: $a) }', {}, 'UNAUTHENTICATED'],
    ['query ($a: Boolean!) { open paid @include(if: $a) }', { a: 'false' }, 'UNAUTHENTICATED'],
  ])('the verdict of %s with %o', (query, variables, verdict) => {
    expect(verdictOf(query, null, variables)).toBe(verdict)
  })
})

test('in a document of several operations only the named one counts', () => {
  const document = 'query a { open } query b { paid }'
  expect([verdictOf(document, null, {}, 'a'), verdictOf(document, null, {}, 'b')]).toEqual([
    'ok',
    'UNAUTHENTICATED',
  ])
  expect([verdictOf(document, null), verdictOf(document, null, {}, 'c')]).toEqual([
    'BAD_USER_INPUT',
    'BAD_USER_INPUT',
  ])
})

test.each([
  ['mutation { pay greet }', 'ok'],
  ['mutation { a: pay b: pay }', 'ONE_PAYMENT_PER_OPERATION'],
  ['mutation { pay ...F } fragment F on Mutation { b: pay }', 'ONE_PAYMENT_PER_OPERATION'],
  ['mutation { pay ... on Mutation { b: pay } }', 'ONE_PAYMENT_PER_OPERATION'],
])('a document moves money once: %s', (query, verdict) => {
  expect(verdictOf(query, ['pay'])).toBe(verdict)
})

test('a plan is made once per document and operation', () => {
  const document = parse('query a { open } query b { paid }')
  expect(accessPlan(schema, document, 'a')).toBe(accessPlan(schema, document, 'a'))
  expect(accessPlan(schema, document, 'b')).not.toBe(accessPlan(schema, document, 'a'))
})

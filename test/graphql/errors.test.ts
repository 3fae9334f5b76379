import { PothosValidationError } from '@pothos/core'
import { buildSchema, type GraphQLFieldResolver, GraphQLError, type GraphQLObjectType } from 'graphql'
import { describe, expect, test } from 'vitest'
import { openAdmission } from '../../src/limits/admission.ts'
import type { Context } from '../../src/context.ts'
import { createOperations } from '../../src/graphql/operation.ts'
import { DomainError } from '../../src/shared/errors.ts'
import type { Log } from '../../src/telemetry/log.ts'
import { testLimits } from '../kit/graphql.ts'

// The error that a caller gets, and the entry that is logged instead.

const schema = buildSchema(/* GraphQL */ `
  interface Face { id: ID }
  type Known implements Face { id: ID }
  type Query { text: String, needed: String!, number: Int, list: [Int!], face: Face, takes(n: Int! = 1): Int }
`)
const fields = (schema.getQueryType() as GraphQLObjectType).getFields()

type Resolve = GraphQLFieldResolver<unknown, unknown>
const throwing = (error: unknown) => () => {
  throw error
}

async function ask(query: string, resolve: Resolve, variables: object = {}) {
  const logged: unknown[] = []
  const log = { error: (line: { err: unknown }) => logged.push(line.err) } as unknown as Log
  for (const field of Object.values(fields)) field.resolve = resolve
  const operations = createOperations(schema)
  const operation = await operations.read({ query, variables }, {
    actor: null,
    config: { mode: 'sandbox' },
    admission: openAdmission(10_000, async () => {}),
    requestLimits: testLimits(),
    responseHeaders: new Map(),
    requestId: 'r1',
    log,
  } as unknown as Context)
  const result = Array.isArray(operation) ? { errors: operation } : await operations.run(operation)
  if ('deliver' in result) throw new Error('no subscription was asked for')
  const [error] = result.errors ?? []
  return {
    message: error?.message,
    extensions: error?.extensions,
    logged: logged.length,
    text: JSON.stringify(result),
  }
}

describe('a bug of ours is masked, and logged once', () => {
  const secret = 'password=hunter2'

  test.each<[string, string, Resolve]>([
    ['anything thrown', '{ text }', throwing(new Error(secret))],
    ['not even an error', '{ text }', throwing(secret)],
    ['a GraphQLError without a code', '{ text }', throwing(new GraphQLError(secret))],
    [
      'one within another',
      '{ text }',
      throwing(new GraphQLError(secret, { originalError: new Error(secret) })),
    ],
    ['null where a value is required', '{ needed }', () => null],
    ['a number beyond Int', '{ number }', () => 3_000_000_000],
    ['no number at all', '{ number }', () => secret],
    ['no list', '{ list }', () => secret],
    ['an unknown type', '{ face { id } }', () => ({ secret })],
  ])('%s', async (_what, query, resolve) => {
    const { message, extensions, logged, text } = await ask(query, resolve)
    expect(message).toBe('Something went wrong on our side. Quote the request id to support.')
    expect(extensions).toEqual({ code: 'INTERNAL_SERVER_ERROR', requestId: 'r1' })
    expect(logged).toBe(1)
    expect(text).not.toContain('hunter2')
  })
})

describe('an error that the caller can correct is passed on, and not logged', () => {
  test.each<[string, string, Resolve, object, string, string]>([
    ['a refusal', '{ text }', throwing(new DomainError('NOT_FOUND', 'Gone.')), {}, 'NOT_FOUND', 'Gone.'],
    [
      'a bad cursor',
      '{ text }',
      throwing(new PothosValidationError('Invalid cursor: x')),
      {},
      'BAD_USER_INPUT',
      'Invalid cursor: x',
    ],
    [
      'null for a required variable',
      'query($n: Int = 2) { takes(n: $n) }',
      () => 1,
      { n: null },
      'BAD_USER_INPUT',
      'not to be null',
    ],
    ['an unknown field', '{ nothing }', () => 1, {}, 'GRAPHQL_VALIDATION_FAILED', 'Cannot query field'],
    ['no GraphQL', '{', () => 1, {}, 'GRAPHQL_PARSE_FAILED', 'Syntax Error'],
  ])('%s', async (_what, query, resolve, variables, code, words) => {
    const { message, extensions, logged } = await ask(query, resolve, variables)
    expect(extensions).toMatchObject({ code, requestId: 'r1' })
    expect(message).toContain(words)
    expect(logged).toBe(0)
  })
})

test('a refusal carries its problems, its scopes and the time to retry', async () => {
  const problems = [{ field: 'amount', message: 'is required' }]
  const error = new DomainError('INVALID_INPUT', undefined, {
    problems,
    requiredScopes: ['pay'],
    retryAfterS: 7,
  })
  const { extensions } = await ask('{ text }', throwing(error))
  expect(extensions).toMatchObject({
    code: 'INVALID_INPUT',
    problems,
    requiredScopes: ['pay'],
    retryAfter: 7,
  })
})

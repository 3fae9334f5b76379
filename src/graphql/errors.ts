import { PothosValidationError } from '@pothos/core'
import { GraphQLError, Kind } from 'graphql'
import { busyRefusal } from '../database/busy.ts'
import {
  DomainError,
  type FieldProblem,
  type RefusalCode,
  refusals as table,
  UnsafeToRepeat,
} from '../shared/errors.ts'
import type { Log } from '../telemetry/log.ts'
import { builder } from './builder.ts'
import { nameEnum } from './enums.ts'

const RefusalCodeEnum = nameEnum(
  'RefusalCode',
  Object.fromEntries(Object.entries(table).map(([code, { message }]) => [code, message])) as Record<
    RefusalCode,
    string
  >,
  'The code of a refusal, each with its usual message. `extensions.code` of an error has the same words.',
)

const Refusal = builder.interfaceRef<DomainError>('Refusal').implement({
  description: 'An expected refusal. Nothing of the request was done, unless the type says otherwise.',
  fields: (t) => ({
    code: t.expose('code', {
      type: RefusalCodeEnum,
      description: 'The code of the refusal, for programs. It never changes.',
    }),
    message: t.exposeString('message', { description: 'A short explanation, for people.' }),
    retryAfter: t.int({
      nullable: true,
      description: 'Seconds to wait before another try; null when waiting does not help.',
      resolve: ({ detail }) => detail.retryAfterS ?? null,
    }),
  }),
})

const Problem = builder.objectRef<FieldProblem>('InputProblem').implement({
  description: 'A problem with one field of the input.',
  fields: (t) => ({
    field: t.exposeString('field', {
      description: 'The path of the field, for example `recipients[3].amount`.',
    }),
    message: t.exposeString('message', { description: 'An explanation of the problem, for people.' }),
  }),
})

type RefusalClass = new () => DomainError
const classes = new Map<RefusalCode, RefusalClass>()

/**
 * Returns the GraphQL type of a refusal, made at its first use. A resource adds fields with
 * `builder.objectField`. Every `DomainError` with this code counts as an instance.
 */
export function refusalType(code: RefusalCode): RefusalClass {
  const known = classes.get(code)
  if (known) return known
  const type = class extends DomainError {
    constructor() {
      super(code)
    }

    static override [Symbol.hasInstance](value: unknown): boolean {
      return value instanceof DomainError && value.code === code
    }
  }
  classes.set(code, type)
  builder.objectType(type, {
    name: table[code].type,
    description: table[code].message,
    interfaces: [Refusal],
  })
  return type
}

builder.objectField(refusalType('INVALID_INPUT'), 'problems', (t) =>
  t.field({
    type: [Problem],
    description: 'The problems of single fields, at most the first 100.',
    resolve: (error) => [...(error.detail.problems ?? [])],
  }),
)
builder.objectField(refusalType('FORBIDDEN'), 'requiredScopes', (t) =>
  t.stringList({
    description:
      'The scopes of which the token lacks at least one; empty when the refusal is not about scopes.',
    resolve: (error) => [...(error.detail.requiredScopes ?? [])],
  }),
)
/** Returns the types of the refusals that a mutation may return: members of its result union. */
export function refusals(...codes: readonly RefusalCode[]): { types: RefusalClass[] } {
  return { types: codes.map(refusalType) }
}

/**
 * Returns the error that a caller may see: refusals and request errors as they are, any other error masked
 * and logged. Every error carries the request's id.
 */
export function toGraphQLError(error: unknown, requestId: string, log: Log): GraphQLError {
  if (!(error instanceof GraphQLError)) {
    return toGraphQLError(new GraphQLError('', { originalError: error as Error }), requestId, log)
  }
  const { nodes, path, originalError } = error
  const base = { nodes: nodes ?? null, path: path ?? null }
  const thrown = rootCause(originalError)
  const busy = busyRefusal(thrown)
  if (busy) log.warn({ err: thrown, requestId, path }, 'the database did not answer in time')
  const cause = busy ?? (thrown instanceof UnsafeToRepeat ? thrown.cause : thrown)
  if (cause instanceof DomainError) {
    const { problems, requiredScopes, retryAfterS, tokenProblem } = cause.detail
    const extensions = {
      code: cause.code,
      requestId,
      ...(problems && { problems }),
      ...(requiredScopes && { requiredScopes }),
      ...(tokenProblem && { tokenProblem }),
      ...(retryAfterS !== undefined && { retryAfter: retryAfterS }),
    }
    return new GraphQLError(cause.message, { ...base, extensions })
  }
  const reported = cause ?? error
  if (reported instanceof GraphQLError && isCallers(reported, path !== undefined)) {
    const { extensions, message } = reported
    const code = extensions['code'] ?? (path ? 'BAD_USER_INPUT' : 'GRAPHQL_VALIDATION_FAILED')
    const { http: _http, ...shown } = extensions
    return new GraphQLError(message, {
      ...base,
      source: error.source,
      positions: error.positions,
      extensions: { ...shown, code, requestId },
    })
  }
  log.error({ err: reported, requestId, path }, 'a resolver failed')
  return new GraphQLError('Something went wrong on our side. Quote the request id to support.', {
    ...base,
    extensions: { code: 'INTERNAL_SERVER_ERROR', requestId },
  })
}

/**
 * Whether the caller's request caused an error. While fields run, GraphQL itself and the libraries throw
 * errors of the same class for bugs of the service. Such an error points to a field of the document, or to no
 * part of it.
 */
function isCallers(error: GraphQLError, isRunning: boolean): boolean {
  if (!isRunning || error.extensions['code'] !== undefined || error instanceof PothosValidationError)
    return true
  return error.nodes?.some(({ kind }) => kind !== Kind.FIELD) ?? false
}

function rootCause(error: unknown): unknown {
  let cause = error
  for (let depth = 0; depth < 5 && cause instanceof GraphQLError && cause.originalError; depth += 1) {
    cause = cause.originalError
  }
  return cause ?? undefined
}

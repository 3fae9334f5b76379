import { normalizedExecutor } from '@graphql-tools/executor'
import {
  type DocumentNode,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  parse,
  specifiedRules,
  validate,
} from 'graphql'
import { LruMap } from '../shared/lru-map.ts'
import type { Context } from '../context.ts'
import { mine } from '../identity/callers/actor.ts'
import { asMerchant } from '../database/merchant-pool.ts'
import { enter, hasRoom, mayAsk, signIn, skip, type Steps, takesTurn } from '../enter.ts'
import { limits } from '../shared/limits.ts'
import { accessPlan, checkAccess, findOperation } from './access-plan.ts'
import { checkAnswer } from './answer-size.ts'
import { compile } from './compiled.ts'
import type { FrameStream, StreamPace } from './broadcast.ts'
import { toGraphQLError } from './errors.ts'
import { priorityOf } from './priority.ts'
import { checkCost, checkShape } from './query-limits.ts'
import type { CheckedOperation } from './checked-operation.ts'
import { openSubscription, type SubscriptionRegistry } from './subscription.ts'
import { variableProblems } from './variable-problems.ts'
import { SharedWindow } from '../limits/window.ts'

/** The most tokens of a GraphQL document (see docs/design/architecture.md#limits-of-graphql). */
const graphqlTokensMax = 2_000

/** The number of parsed documents that are kept. */
const graphqlDocumentsMax = 500

/** The most characters of an error's message: a long input of a caller is not sent back whole. */
const graphqlMessageMax = 500

/**
 * The time limit of a mutation. It is longer because a deposit waits 20 s for its operator before it answers
 * that the outcome is open.
 */
const graphqlMutationDeadlineMs = 30_000

/**
 * The subscriptions that a token may open in one process: 40 in 8 seconds. Choice: a client may have 20
 * subscriptions and can open all of them twice.
 */
const subscriptionOpenings = { name: 'subscriptions', max: 40, windowS: 8 } as const

/** The operation that a client sends, not yet checked. */
export interface OperationRequest {
  query?: unknown
  extensions?: unknown
  operationName?: unknown
  variables?: unknown
}

type Variables = Readonly<Record<string, unknown>>

/**
 * The functions that read and run a client's operation: HTTP, server-sent events and WebSockets all use them.
 */
export interface Operations {
  /**
   * Reads and checks an operation without running any of it.
   * @returns the operation, or the reasons why it may not run
   */
  read(request: OperationRequest, ctx: Context): Promise<CheckedOperation | GraphQLError[]>
  /**
   * Runs a checked operation.
   * @returns its result, or the stream of a subscription, which throws only GraphQLErrors that may be shown;
   *   other errors are masked and logged
   */
  run(operation: CheckedOperation): Promise<ExecutionResult | FrameStream>
}

/**
 * Returns the steps of a GraphQL request before its document is read: only the caller is signed in. The other
 * steps depend on the document: `read` and `run` take them.
 */
export function beforeDocument(authorization: string | undefined): Steps {
  const later = skip('the document says what is asked for, how urgent it is and whether it writes')
  return { room: later, caller: signIn(authorization), right: later, turn: later }
}

/**
 * The longest document that is kept, in characters: all kept documents together stay below a few megabytes.
 */
const keptLengthMax = 8 * 1_024

/**
 * Makes the functions that read and run operations of a schema. They keep the latest valid documents, so that
 * repeated operations are fast.
 */
export function createOperations(schema: GraphQLSchema, pace: Partial<StreamPace> = {}): Operations {
  const documents = new LruMap<string, DocumentNode>(graphqlDocumentsMax)
  const registry: SubscriptionRegistry = {
    channels: new Map(),
    kinds: new Map(),
    openings: new SharedWindow(subscriptionOpenings, null),
    pace: { stallMs: limits.streamStallMs, checkpointMs: limits.checkpointMs, ...pace },
    show,
  }

  function readDocument(text: string, hideSuggestions: boolean): DocumentNode | readonly GraphQLError[] {
    const known = documents.get(text)
    if (known) return known
    const document = parseDocument(text)
    checkShape(document)
    const options = { maxErrors: limits.graphqlErrorsMax, hideSuggestions }
    const problems = validate(schema, document, specifiedRules, options)
    if (problems.length > 0) return problems
    if (text.length <= keptLengthMax) documents.set(text, document)
    return document
  }

  return {
    async read(request, ctx) {
      try {
        const { query, operationName, variableValues } = readRequest(request)
        const document = readDocument(query, !maySeeSchema(ctx))
        if (!('kind' in document)) return shownErrors(document, ctx)
        const node = findOperation(document, operationName)
        const plan = accessPlan(schema, document, operationName)
        await enter(ctx, {
          room: skip('an operation that runs takes its slot, or looks for room, at once'),
          caller: skip('the caller was signed in before the document was read'),
          right: mayAsk((actor) => {
            checkAccess(plan, actor, variableValues)
            if (plan.readsSchema && !maySeeSchema(ctx)) throw schemaHidden()
          }),
          turn: takesTurn(node.operation === 'mutation' ? 'write' : 'read', 'graphql'),
        })
        const cost = checkCost(schema, document, node, variableValues)
        return {
          schema,
          document,
          operationName,
          variableValues,
          contextValue: ctx,
          kind: node.operation,
          cost,
          remaining: await takeObjects(ctx, cost),
          priority: priorityOf(plan, node.operation, cost),
        }
      } catch (error) {
        return shownErrors([error], ctx)
      }
    },
    async run(operation) {
      const { contextValue: ctx, kind, priority } = operation
      try {
        if (kind !== 'subscription') {
          return await ctx.admission.run(priority, () => onBehalf(ctx, () => runToEnd(operation)))
        }
        await hasRoom(priority)(ctx)
        const opened = await onBehalf(ctx, () => openSubscription(operation, registry))
        return 'deliver' in opened ? showLastErrors(opened, ctx) : showErrors(placed(operation, opened), ctx)
      } catch (error) {
        return { errors: shownErrors([error], ctx) }
      }
    },
  }
}

/**
 * Whether a caller may read the schema by introspection. In production only a caller with a token may. The
 * schema is no secret: the file `schema.graphql` is public.
 */
function maySeeSchema({ config, actor }: Context): boolean {
  return actor !== null || config.mode === 'sandbox'
}

function schemaHidden(): GraphQLError {
  return new GraphQLError(
    'The schema is shown only to callers with a token. It is published as schema.graphql.',
    {
      extensions: { code: 'UNAUTHENTICATED', tokenProblem: 'missing' },
    },
  )
}

/**
 * Counts the objects of an operation, and 1 for the operation itself.
 * @returns the number of objects that remain.
 * @throws GraphQLError RATE_LIMITED
 */
async function takeObjects(ctx: Context, cost: number): Promise<number> {
  const { allowed, limit, remaining, resetS } = await ctx.requestLimits.takeObjects(ctx, cost + 1)
  if (allowed) return remaining
  throw new GraphQLError(`At most ${limit} objects can be read per minute. Try again in ${resetS} seconds.`, {
    extensions: {
      code: 'RATE_LIMITED',
      retryAfter: resetS,
      cost: { requested: cost, limit: limits.graphqlCostMax, remaining },
    },
  })
}

/**
 * Checks the types of a request's fields.
 * @throws GraphQLError BAD_REQUEST, PERSISTED_QUERY_NOT_SUPPORTED
 */
function readRequest(request: OperationRequest) {
  checkHasText(request)
  const { query, operationName, variables } = request
  if (typeof query !== 'string') throw badRequest('The request must contain a query as text.')
  if (operationName != null && typeof operationName !== 'string')
    throw badRequest('operationName must be text.')
  if (variables != null && (typeof variables !== 'object' || Array.isArray(variables))) {
    throw badRequest('variables must be an object.')
  }
  // Some clients send an empty name for an operation without a name.
  return { query, operationName: operationName || undefined, variableValues: (variables ?? {}) as Variables }
}

/**
 * Refuses an operation that is named only by the hash of its text. The service keeps no texts under hashes,
 * and Apollo's clients send the text after this error.
 * @throws GraphQLError PERSISTED_QUERY_NOT_SUPPORTED
 */
export function checkHasText({ query, extensions }: OperationRequest): void {
  const isHashed = typeof extensions === 'object' && extensions !== null && 'persistedQuery' in extensions
  if (!isHashed || (query !== undefined && query !== null && query !== '')) return
  const code = 'PERSISTED_QUERY_NOT_SUPPORTED'
  throw new GraphQLError('PersistedQueryNotSupported', { extensions: { code } })
}

function badRequest(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST' } })
}

function parseDocument(text: string): DocumentNode {
  try {
    return parse(text, { maxTokens: graphqlTokensMax })
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error
    const { message, source, positions } = error
    throw new GraphQLError(message, { source, positions, extensions: { code: 'GRAPHQL_PARSE_FAILED' } })
  }
}

/** Runs a query or mutation within its time limit. @throws GraphQLError DEADLINE_EXCEEDED */
async function runToEnd(operation: CheckedOperation): Promise<ExecutionResult> {
  const abort = new AbortController()
  const deadline = Promise.withResolvers<never>()
  const ms = operation.kind === 'mutation' ? graphqlMutationDeadlineMs : limits.graphqlDeadlineMs
  const timer = setTimeout(() => {
    const error = new GraphQLError(
      `The operation took longer than ${ms / 1_000} s. Work that it started may continue.`,
      {
        extensions: { code: 'DEADLINE_EXCEEDED' },
      },
    )
    abort.abort(error)
    deadline.reject(error)
  }, ms)
  try {
    const fields = atPosition(operation).then((positioned) => runFields(positioned, abort.signal))
    const ended = await Promise.race([fields, deadline.promise])
    const result = showErrors(ended, operation.contextValue)
    if (!('data' in result)) return result
    // The answer to a mutation has no size limit, because the caller must learn what it did.
    if (operation.kind === 'query') checkAnswer(result.data)
    const { cost: requested, remaining } = operation
    const cost = { requested, limit: limits.graphqlCostMax, remaining }
    return { ...result, extensions: { ...result.extensions, cost } }
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Reads the position of the event log for an operation that asks for it, before any field is read: a change
 * that the fields do not show then has an event after this position.
 */
async function atPosition(operation: CheckedOperation): Promise<CheckedOperation> {
  const { schema, document, operationName, contextValue } = operation
  const { rootFields } = accessPlan(schema, document, operationName)
  if (!rootFields.includes('asOfSequence') || contextValue.actor === null) return operation
  const { merchantId } = mine(contextValue)
  const asOfSequence = contextValue.feed.start(merchantId, null).then(({ head }) => head)
  // The field itself reports that the position could not be read; other fields are read all the same.
  await asOfSequence.catch(() => null)
  return { ...operation, contextValue: { ...contextValue, asOfSequence } }
}

/** Runs an operation, compiled if it can be; the result is the same. */
async function runFields(operation: CheckedOperation, signal: AbortSignal): Promise<ExecutionResult> {
  const { schema, document, operationName, variableValues, contextValue } = operation
  const compiled = compile(schema, document, operationName)
  const result = await compiled?.(variableValues, contextValue, signal)
  // General execution also refuses variables that do not fit.
  if (result && 'data' in result) return result
  return placed(operation, (await normalizedExecutor({ ...operation, signal })) as ExecutionResult)
}

/** Names the place of each wrong value, in the result of an operation that did not run for its variables. */
function placed(operation: CheckedOperation, result: ExecutionResult): ExecutionResult {
  if (result.data !== undefined) return result
  const problems = variableProblems(operation, !maySeeSchema(operation.contextValue))
  return problems.length > 0 ? { ...result, errors: problems } : result
}

/** Runs work so that all of its database queries see only the rows of the caller's merchant. */
function onBehalf<T>(ctx: Context, work: () => T): T {
  return asMerchant(ctx.actor?.merchantId ?? null, work)
}

/**
 * Returns a result of a subscription as its reader may see it; each result has the size limit of an answer.
 */
function show(result: ExecutionResult, ctx: Context): ExecutionResult {
  try {
    checkAnswer(result.data)
    return showErrors(result, ctx)
  } catch (error) {
    return { errors: shownErrors([error], ctx) }
  }
}

function showLastErrors(stream: FrameStream, ctx: Context): FrameStream {
  return {
    end: () => stream.end(),
    async deliver(outlet) {
      try {
        await onBehalf(ctx, () => stream.deliver(outlet))
      } catch (error) {
        throw toGraphQLError(error, ctx.requestId, ctx.log)
      }
    },
  }
}

function showErrors(result: ExecutionResult, ctx: Context): ExecutionResult {
  return result.errors ? { ...result, errors: shownErrors(result.errors, ctx) } : result
}

function shownErrors(errors: readonly unknown[], ctx: Context): GraphQLError[] {
  return errors.slice(0, limits.graphqlErrorsMax).map((error) => {
    const shown = toGraphQLError(error, ctx.requestId, ctx.log)
    if (!maySeeSchema(ctx)) shown.message = shown.message.replace(/ Did you mean .*$/s, '')
    if (shown.message.length > graphqlMessageMax) {
      shown.message = `${shown.message.slice(0, graphqlMessageMax)}…`
    }
    return shown
  })
}

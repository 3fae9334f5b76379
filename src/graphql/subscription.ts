import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionResult,
  executeSubscriptionEvent,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type ValidatedSubscriptionArgs,
  validateSubscriptionArgs,
  visit,
} from 'graphql'
import type { Allowances } from '../access/allowances.ts'
import { actorOf } from '../access/actor.ts'
import type { Context } from '../context.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import { findOperation } from './access-plan.ts'
import { type Channels, deliver, type Frame, type FrameStream } from './broadcast.ts'
import type { LiveStream } from './live-stream.ts'
import type { Operation } from './operation.ts'

/** What subscriptions share. */
export interface SubscriptionGround {
  channels: Channels
  allowances: Allowances
  /** What a caller may see of a result; an answer that is too large is refused. */
  show: (result: ExecutionResult, ctx: Context) => ExecutionResult
  /** How long a reader may stall. */
  stallMs: number
}

/**
 * Opens a subscription: its stream is there, nothing is sent yet. Equal subscriptions of one merchant, with
 * the same scopes, are executed once for all.
 * @throws GraphQLError RATE_LIMITED
 */
export async function openSubscription(
  operation: Operation,
  { channels, allowances, show, stallMs }: SubscriptionGround,
): Promise<ExecutionResult | FrameStream> {
  const { contextValue: ctx } = operation
  takeOpening(allowances, ctx)
  const validated = validateSubscriptionArgs(operation)
  if (!('schema' in validated)) return { errors: validated }
  const args: ValidatedSubscriptionArgs = validated
  const stream = await createSourceEventStream(args)
  if (!(Symbol.asyncIterator in stream)) return stream
  invariant('log' in stream, 'every subscription is a live stream')
  const live = stream as LiveStream

  async function write(event: unknown): Promise<Frame> {
    const result = await executeSubscriptionEvent({ ...args, rootValue: event, contextValue: { ...ctx } })
    const json = Buffer.from(JSON.stringify(show(result, ctx)))
    return { json, cursor: String(live.log.positionOf(event)) }
  }

  return {
    deliver: (outlet) => deliver(channels, channelName(operation), live, write, outlet, stallMs),
    end: () => live.end(null),
  }
}

/** A merchant's openings are counted among its reads. @throws GraphQLError RATE_LIMITED */
function takeOpening(allowances: Allowances, ctx: Context): void {
  const allowance = { max: limits.subscriptionOpensMax, refillMs: limits.subscriptionOpensWindowMs }
  const { retryAfterS } = allowances.take(actorOf(ctx).tokenId, 1, allowance)
  if (retryAfterS === 0) return
  throw new GraphQLError(`Too many subscriptions at once: try again in ${retryAfterS} s.`, {
    extensions: { code: 'RATE_LIMITED', retryAfter: retryAfterS },
  })
}

/**
 * Names all that a result depends on, besides the event: who reads, by merchant, scopes and language, and
 * what is read. Where a reader begins makes no difference.
 */
function channelName({ document, operationName, variableValues, contextValue }: Operation): string {
  const { merchantId, scopes } = actorOf(contextValue)
  const operation = findOperation(document, operationName)
  const start = startVariable(document, operation)
  // What a client sends beside them is of no consequence, and must not make a channel of its own.
  const declared = operation.variableDefinitions?.map(({ variable }) => variable.name.value) ?? []
  const variables = declared.filter((name) => name !== start).map((name) => [name, variableValues[name]])
  return JSON.stringify([
    merchantId,
    [...scopes].toSorted(),
    contextValue.language,
    documentNumber(document),
    operationName ?? null,
    variables,
  ])
}

let documentsSeen = 0
const documentNumbers = new WeakMap<DocumentNode, number>()

/** Documents that are kept are the same object each time. */
function documentNumber(document: DocumentNode): number {
  const known = documentNumbers.get(document)
  if (known !== undefined) return known
  documentsSeen += 1
  documentNumbers.set(document, documentsSeen)
  return documentsSeen
}

const startVariables = new WeakMap<OperationDefinitionNode, string | null>()

/**
 * The variable that only says where to begin: `after` of the subscription's own field, and used nowhere
 * else.
 */
function startVariable(document: DocumentNode, operation: OperationDefinitionNode): string | null {
  const known = startVariables.get(operation)
  if (known !== undefined) return known
  const [field] = operation.selectionSet.selections
  const after =
    field?.kind === Kind.FIELD ? field.arguments?.find(({ name }) => name.value === 'after') : null
  const name = after?.value.kind === Kind.VARIABLE ? after.value.name.value : null
  let uses = 0
  visit(document, {
    VariableDefinition: () => false,
    Variable: (node) => {
      if (node.name.value === name) uses += 1
    },
  })
  const found = uses === 1 ? name : null
  startVariables.set(operation, found)
  return found
}

import { hash } from 'node:crypto'
import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionResult,
  executeSubscriptionEvent,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  print,
  type ValidatedSubscriptionArgs,
  validateSubscriptionArgs,
  visit,
} from 'graphql'
import { type Actor, actorOf, nameOf } from '../identity/actor.ts'
import { actingAs, type Context } from '../context.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import { accessPlan, findOperation } from './access-plan.ts'
import { type Channels, deliver, type Frame, type FrameStream, joinChannel } from './broadcast.ts'
import { type LiveStream, takeSubscriptions } from './live-stream.ts'
import type { CheckedOperation } from './checked-operation.ts'
import type { SharedWindow } from '../limits/window.ts'

/** What subscriptions share. */
export interface SubscriptionRegistry {
  channels: Channels
  /** How many channels each merchant has. */
  kinds: Map<string, number>
  /** How many each token opened of late. */
  openings: SharedWindow
  /** What a caller may see of a result; an answer that is too large is refused. */
  show: (result: ExecutionResult, ctx: Context) => ExecutionResult
  /** How long a reader may stall. */
  stallMs: number
}

/**
 * Opens a subscription: its stream is there, nothing is sent yet. Equal subscriptions of one merchant, with
 * the same scopes, are executed once for all; of those that differ a merchant has so many. A document with a
 * field whose value depends on the person is executed once for each person.
 * @throws GraphQLError RATE_LIMITED, TOO_MANY_SUBSCRIPTIONS
 */
export async function openSubscription(
  operation: CheckedOperation,
  { channels, kinds, openings, show, stallMs }: SubscriptionRegistry,
): Promise<ExecutionResult | FrameStream> {
  const { contextValue: ctx } = operation
  await takeOpening(openings, ctx)
  const validated = validateSubscriptionArgs(operation)
  if (!('schema' in validated)) return { errors: validated }
  const args: ValidatedSubscriptionArgs = validated
  const stream = await createSourceEventStream(args)
  if (!(Symbol.asyncIterator in stream)) return stream
  invariant('log' in stream, 'every subscription is a live stream')
  const live = stream as LiveStream
  const { perPerson } = accessPlan(operation.schema, operation.document, operation.operationName)
  const caller = actorOf(ctx)
  const actor = perPerson ? caller : sharedActor(caller)

  async function write(event: unknown): Promise<Frame> {
    const contextValue = actingAs(ctx, actor)
    const result = await executeSubscriptionEvent({ ...args, rootValue: event, contextValue })
    const json = Buffer.from(JSON.stringify(show(result, ctx)))
    return { json, cursor: String(live.log.positionOf(event)) }
  }

  try {
    const channel = joinChannel(channels, channelName(operation, perPerson), live, write, () =>
      takeKind(kinds, ctx),
    )
    return {
      deliver: (outlet) => deliver(channel, live, write, outlet, stallMs),
      end: () => live.end(null),
    }
  } catch (error) {
    live.end(null)
    throw error
  }
}

/** @throws GraphQLError TOO_MANY_SUBSCRIPTIONS */
function takeKind(kinds: Map<string, number>, ctx: Context): () => void {
  const max = limits.subscriptionKindsPerMerchantMax
  const slot = { key: `merchant:${actorOf(ctx).merchantId}`, max, whose: 'merchant' }
  return takeSubscriptions(kinds, 'different subscriptions', [slot])
}

/** A merchant's openings are counted among its reads. @throws GraphQLError RATE_LIMITED */
async function takeOpening(openings: SharedWindow, ctx: Context): Promise<void> {
  const { allowed, resetS: retryAfter } = await openings.take(actorOf(ctx).tokenId, 1)
  if (allowed) return
  throw new GraphQLError(`Too many subscriptions were started at once. Try again in ${retryAfter} seconds.`, {
    extensions: { code: 'RATE_LIMITED', retryAfter },
  })
}

/**
 * The caller as a result for several readers may see it: the merchant and the scopes, which all of them have
 * in common. A resolver that reads more fails, so that no reader is told what holds for another: its field
 * must be marked `perPerson`.
 */
function sharedActor({ merchantId, scopes }: Actor): Actor {
  return new Proxy({ merchantId, scopes } as Actor, {
    get(common, key) {
      invariant(key in common, `Actor.${String(key)} is read by a field that is not marked perPerson`)
      return common[key as keyof Actor]
    },
  })
}

/**
 * Names all that a result depends on, besides the event: who reads, by merchant, scopes and language, and
 * what is read; where the result depends on the person, the person too. Where a reader begins makes no
 * difference.
 */
function channelName(operation: CheckedOperation, perPerson: boolean): string {
  const { document, operationName, variableValues, contextValue } = operation
  const actor = actorOf(contextValue)
  const { merchantId, scopes } = actor
  const { digest, variables } = contentOf(document, findOperation(document, operationName))
  return JSON.stringify([
    merchantId,
    [...scopes].toSorted(),
    perPerson ? [nameOf(actor), actor.role] : null,
    contextValue.language,
    digest,
    operationName ?? null,
    variables.map((name) => [name, variableValues[name]]),
  ])
}

/** What an operation reads, without where it begins. */
interface Content {
  /** Of the document's text, in one layout. */
  digest: string
  /**
   * Those that are declared: what a client sends beside them is of no consequence, and must not make a
   * channel of its own.
   */
  variables: readonly string[]
}

const contents = new WeakMap<OperationDefinitionNode, Content>()

/** It begins at `after` of the subscription's own field: a text, or a variable that is used nowhere else. */
function contentOf(document: DocumentNode, operation: OperationDefinitionNode): Content {
  const known = contents.get(operation)
  if (known) return known
  const [field] = operation.selectionSet.selections
  const start =
    field?.kind === Kind.FIELD ? field.arguments?.find(({ name }) => name.value === 'after') : null
  const given = start?.value.kind === Kind.VARIABLE ? start.value.name.value : null
  let uses = 0
  visit(document, {
    VariableDefinition: () => false,
    Variable: (node) => {
      if (node.name.value === given) uses += 1
    },
  })
  const isStart = (name: string) => name === given && uses === 1
  const rest = visit(document, {
    Argument: (node) => (node === start ? null : undefined),
    VariableDefinition: ({ variable }) => (isStart(variable.name.value) ? null : undefined),
  })
  const declared = operation.variableDefinitions?.map(({ variable }) => variable.name.value) ?? []
  const content = {
    digest: hash('sha256', print(rest), 'base64'),
    variables: declared.filter((name) => !isStart(name)),
  }
  contents.set(operation, content)
  return content
}

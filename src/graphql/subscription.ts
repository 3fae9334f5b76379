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
import { type Actor, actorOf, nameOf } from '../identity/callers/actor.ts'
import { actingAs, type Context } from '../context.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import { accessPlan, findOperation } from './access-plan.ts'
import {
  type Channels,
  deliver,
  type Frame,
  type FrameStream,
  joinChannel,
  type StreamPace,
} from './broadcast.ts'
import { isCheckpoints, wantsCheckpoints } from './checkpoints.ts'
import { type LiveStream, takeSubscriptions } from './live-stream.ts'
import type { CheckedOperation } from './checked-operation.ts'
import type { SharedWindow } from '../limits/window.ts'

/** The state that all subscriptions share. */
export interface SubscriptionRegistry {
  channels: Channels
  /** The number of channels that each merchant has. */
  kinds: Map<string, number>
  /** The subscriptions that each token opened recently. */
  openings: SharedWindow
  /** Returns the result as a caller may see it; refuses an answer that is too large. */
  show: (result: ExecutionResult, ctx: Context) => ExecutionResult
  pace: StreamPace
}

/**
 * Opens a subscription. Its stream exists then, but has sent no event. Equal subscriptions of one merchant
 * with the same scopes are executed once for all; the number of different ones per merchant is limited. A
 * document with a field whose value depends on the person is executed once for each person.
 * @throws GraphQLError RATE_LIMITED, TOO_MANY_SUBSCRIPTIONS
 */
export async function openSubscription(
  operation: CheckedOperation,
  { channels, kinds, openings, show, pace }: SubscriptionRegistry,
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
      takeKind(kinds, ctx, live.log.subject),
    )
    const sendsCheckpoints = wantsCheckpoints(findOperation(operation.document, operation.operationName))
    return {
      deliver: (outlet) => deliver(channel, live, write, outlet, { ...pace, sendsCheckpoints }),
      end: () => live.end(null),
    }
  } catch (error) {
    live.end(null)
    throw error
  }
}

/**
 * Takes one of the slots for different subscriptions of the merchant or, for a stream that follows one
 * object, of this object.
 * @throws GraphQLError TOO_MANY_SUBSCRIPTIONS
 */
function takeKind(kinds: Map<string, number>, ctx: Context, subject: string | undefined): () => void {
  const key = `merchant:${actorOf(ctx).merchantId}`
  const whose = 'merchant'
  if (!subject) {
    const max = limits.subscriptionKindsPerMerchantMax
    return takeSubscriptions(kinds, 'different subscriptions', [{ key, max, whose }])
  }
  const ofOne = { key: `${key} ${subject}`, max: limits.subscriptionKindsPerObjectMax, whose }
  const ofAll = { key: `${key} objects`, max: limits.subscriptionKindsOfObjectsMax, whose }
  const leaveAll = takeSubscriptions(kinds, 'different subscriptions to single objects', [ofAll])
  try {
    const leaveOne = takeSubscriptions(kinds, 'different subscriptions to one object', [ofOne])
    return () => [leaveAll, leaveOne].forEach((leave) => leave())
  } catch (error) {
    leaveAll()
    throw error
  }
}

/**
 * Counts a newly opened subscription of a token. The request limits count it as a read, too.
 * @throws GraphQLError RATE_LIMITED
 */
async function takeOpening(openings: SharedWindow, ctx: Context): Promise<void> {
  const { allowed, resetS: retryAfter } = await openings.take(actorOf(ctx).tokenId, 1)
  if (allowed) return
  throw new GraphQLError(`Too many subscriptions were started at once. Try again in ${retryAfter} seconds.`, {
    extensions: { code: 'RATE_LIMITED', retryAfter },
  })
}

/**
 * Returns the caller for a result that several readers share: it has only the merchant and the scopes, which
 * are the same for all of them. A resolver that reads another field of the caller fails, so that no reader
 * gets a value that holds for another: the resolver's field must be marked `perPerson`.
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
 * Returns a name made of everything on which a result depends, besides the event: the reader's merchant,
 * scopes and language, the content of the operation, and the person where the result depends on it. The
 * position at which a reader begins is no part of it.
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

/** The content of an operation, without the position at which it begins and without `@checkpoints`. */
interface Content {
  /** The digest of the document's text, in one layout. */
  digest: string
  /**
   * The names of the declared variables. Other variables that a client sends have no effect, and must not
   * make a channel of their own.
   */
  variables: readonly string[]
}

const contents = new WeakMap<OperationDefinitionNode, Content>()

/**
 * Reads the content of an operation. It leaves out `after` of the subscription's own field: a text, or a
 * variable that is used nowhere else.
 */
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
    Directive: (node) => (isCheckpoints(node) ? null : undefined),
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

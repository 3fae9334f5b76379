import { GraphQLError } from 'graphql'
import { type Actor, actorOf } from '../identity/callers/actor.ts'
import { type RevocationReason, revocationRefusal } from '../identity/callers/credentials.ts'
import { type Slot, takeSlots } from '../limits/slot.ts'
import type { Context } from '../context.ts'
import type { DomainError } from '../shared/errors.ts'
import { invalidInput } from '../shared/input.ts'
import { limits } from '../shared/limits.ts'

/** The source of a stream's events: a log that can be read from any position on. */
export interface EventLog<T> {
  /** The position up to which the reader has every event. */
  after: bigint
  /** The end of the log when the stream was opened. */
  head: bigint
  /** Reads every event after a position, in order; it must end when the signal aborts. */
  read(after: bigint, signal: AbortSignal): AsyncIterable<T>
  positionOf(event: T): bigint
  /**
   * Whether the reader wants an event; by default the reader wants all. An unwanted event is skipped and
   * counts as read.
   */
  wants?(event: T): boolean
  /** The one object whose events the reader wants: `transaction:12`; absent for many objects. */
  subject?: string
}

/** The stream of one reader through a log, for as long as the reader has the right to it. */
export interface LiveStream<T = unknown> extends AsyncIterable<T> {
  readonly log: EventLog<T>
  /** The position of the last event that was sent. */
  cursor: bigint
  /** A signal that aborts when the stream ends, for any reason. */
  readonly signal: AbortSignal
  /** The error that the reader is to receive at the end; null where there is none. */
  readonly why: DomainError | null
  end(why: DomainError | null): void
}

/**
 * Opens a stream over a log. The end of the stream aborts its signal at once, even while the log waits, and
 * gives its slot back.
 * @returns a stream that ends within a second of its token's end, with UNAUTHENTICATED, ACCOUNT_INACTIVE or
 *   ADDRESS_NOT_ALLOWED
 * @throws DomainError UNAUTHENTICATED for an anonymous caller
 * @throws GraphQLError TOO_MANY_SUBSCRIPTIONS
 */
export function liveStream<T>(ctx: Context, log: EventLog<T>): LiveStream<T> {
  const actor = actorOf(ctx)
  const leave = takeStream(ctx.streams, actor)
  const gone = new AbortController()
  let why: DomainError | null = null
  const unwatch = watchActor(ctx, actor, (ending) => end(revocationRefusal(ending)))

  function end(reason: DomainError | null): void {
    if (gone.signal.aborted) return
    why = reason
    unwatch()
    leave()
    gone.abort()
  }

  return {
    log,
    cursor: log.after,
    signal: gone.signal,
    get why() {
      return why
    },
    end,
    [Symbol.asyncIterator]() {
      return log.read(this.cursor, gone.signal)[Symbol.asyncIterator]()
    },
  }
}

/**
 * Reads the cursor from which a reader of a log continues: the later one of the cursor that the client gave
 * and that of its last event. A browser that connects again repeats the first, which is old by then.
 * @throws DomainError INVALID_INPUT
 */
export function readCursor(
  after: string | null | undefined,
  { lastEventId }: Pick<Context, 'lastEventId'>,
): bigint | null {
  const [given, last] = [after, lastEventId].map((cursor) => (cursor == null ? null : readDigits(cursor)))
  return given != null && last != null && last > given ? last : (given ?? last ?? null)
}

function readDigits(cursor: string): bigint {
  if (/^\d{1,18}$/.test(cursor)) return BigInt(cursor)
  throw invalidInput([{ field: 'after', message: 'must be a cursor from an answer of this service' }])
}

/** The longest timer: one day. A timer of Node cannot run longer than 24 days, and a token lives up to 30. */
const timerMaxMs = 86_400_000

/**
 * Calls the listener once when the actor may not go on: at the end of the token's life, or within a second
 * after it was revoked.
 * @returns the function that ends the watch
 */
export function watchActor(
  { access, clientAddress }: Pick<Context, 'access' | 'clientAddress'>,
  actor: Actor,
  listener: (why: RevocationReason) => void,
): () => void {
  let timer: NodeJS.Timeout
  const unwatch = access.credentials.onRevoked(actor, clientAddress, finish)
  wait()

  function wait(): void {
    const leftMs = actor.expiresAt.getTime() - Date.now()
    timer = setTimeout(() => (leftMs > timerMaxMs ? wait() : finish('expired')), Math.min(leftMs, timerMaxMs))
    timer.unref()
  }

  function finish(why: RevocationReason): void {
    stop()
    listener(why)
  }

  function stop(): void {
    clearTimeout(timer)
    unwatch()
  }
  return stop
}

function takeStream(streams: Context['streams'], { tokenId, merchantId }: Actor): () => void {
  return takeSubscriptions(streams, 'subscriptions', [
    { key: `token:${tokenId}`, max: limits.subscriptionsPerTokenMax, whose: 'token' },
    { key: `merchant:${merchantId}`, max: limits.subscriptionsPerMerchantMax, whose: 'merchant' },
  ])
}

/**
 * Takes one slot under each name.
 * @param what the name of the limited things, for the message
 * @returns the function that gives the slots back
 * @throws GraphQLError TOO_MANY_SUBSCRIPTIONS
 */
export function takeSubscriptions(
  taken: Map<string, number>,
  what: string,
  slots: readonly Slot[],
): () => void {
  const leave = takeSlots(taken, slots)
  if (typeof leave === 'function') return leave
  const { whose, max } = leave
  throw new GraphQLError(`A ${whose} has at most ${max} ${what} at a time. End one of them first.`, {
    extensions: { code: 'TOO_MANY_SUBSCRIPTIONS', limit: max },
  })
}

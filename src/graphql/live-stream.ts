import { GraphQLError } from 'graphql'
import { type Actor, actorOf } from '../identity/actor.ts'
import type { RevocationReason } from '../identity/credentials.ts'
import { type Slot, takeSlots } from '../limits/slot.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../shared/errors.ts'
import { invalidInput } from '../shared/input.ts'
import { limits } from '../shared/limits.ts'

/** Where the events of a stream come from: a log that can be read from any position on. */
export interface EventLog<T> {
  /** The reader has all up to here. */
  after: bigint
  /** The log ended here when the stream was opened. */
  head: bigint
  /** Every event after a position, in order; it must end when the signal aborts. */
  read(after: bigint, signal: AbortSignal): AsyncIterable<T>
  positionOf(event: T): bigint
  /** Whether the reader wants it; left out, all of them. What it does not want it has, and passes over. */
  wants?(event: T): boolean
}

/** One reader's way through a log, for as long as the reader may have it. */
export interface LiveStream<T = unknown> extends AsyncIterable<T> {
  readonly log: EventLog<T>
  /** The last position that was sent. */
  cursor: bigint
  /** Aborts at the end, however it comes. */
  readonly signal: AbortSignal
  /** Why it ended, where the reader is to be told. */
  readonly why: DomainError | null
  end(why: DomainError | null): void
}

/**
 * Opens a stream over a log. Its end aborts the signal at once, also while the log waits; the place that it
 * takes is then free again.
 * @returns a stream that ends within a second of its token's end, with UNAUTHENTICATED, ACCOUNT_INACTIVE or
 *   ADDRESS_NOT_ALLOWED
 * @throws DomainError UNAUTHENTICATED where nobody is signed in
 * @throws GraphQLError TOO_MANY_SUBSCRIPTIONS
 */
export function liveStream<T>(ctx: Context, log: EventLog<T>): LiveStream<T> {
  const actor = actorOf(ctx)
  const leave = takeStream(ctx.streams, actor)
  const gone = new AbortController()
  let why: DomainError | null = null
  const unwatch = watchActor(ctx, actor, (ending) => end(new DomainError(ending)))

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
 * Where a reader of a log goes on. @throws DomainError INVALID_INPUT
 * @param after the cursor that was given, if any
 */
export function readCursor(after: string | null): bigint | null {
  if (after === null) return null
  if (/^\d{1,18}$/.test(after)) return BigInt(after)
  throw invalidInput([{ field: 'after', message: 'must be a cursor from an answer of this service' }])
}

/** Node's timers end after 24 days, a token after 30. */
const timerMaxMs = 86_400_000

/**
 * Calls the listener once when the actor may not go on: at the end of the token's time, or within a second
 * where it is revoked. @returns what ends the watch
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
    timer = setTimeout(
      () => (leftMs > timerMaxMs ? wait() : finish('UNAUTHENTICATED')),
      Math.min(leftMs, timerMaxMs),
    )
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
 * Takes a place under each name.
 * @param what is limited, in words
 * @returns what gives the places back
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
  throw new GraphQLError(`A ${whose} has at most ${max} ${what} at a time.`, {
    extensions: { code: 'TOO_MANY_SUBSCRIPTIONS', limit: max },
  })
}

import { GraphQLError } from 'graphql'
import { type Actor, actorOf } from '../access/actor.ts'
import type { Ending } from '../access/credentials.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'

/**
 * The events of a subscription, pulled one by one for as long as the caller may have them: a slow reader
 * holds back the source. The reader's going aborts the signal at once, also while the source waits; the
 * place that the stream takes is free again however it ends. `ctx.lastEventId` follows it.
 * @param open begins the source; it must end when the signal aborts
 * @param cursorOf where a reader goes on from after this event
 * @throws DomainError UNAUTHENTICATED where nobody is signed in; and from `next`, within a second of the
 *   token's end, UNAUTHENTICATED, ACCOUNT_INACTIVE, ADDRESS_NOT_ALLOWED
 * @throws GraphQLError TOO_MANY_SUBSCRIPTIONS
 */
export function liveStream<T>(
  ctx: Context,
  open: (signal: AbortSignal) => AsyncIterable<T>,
  cursorOf: (event: T) => string,
): AsyncIterableIterator<T, void, void> {
  const actor = actorOf(ctx)
  const leave = takePlaces(ctx.streams, actor)
  const gone = new AbortController()
  const unwatch = watchActor(ctx, actor, (why) => end(new DomainError(why)))
  let source: AsyncIterator<T> | null = null
  let turn: PromiseWithResolvers<IteratorResult<T, void>> | null = null
  let failure: DomainError | null = null

  function end(why: DomainError | null): void {
    if (gone.signal.aborted) return
    unwatch()
    leave()
    gone.abort()
    // A source that waits finishes once it sees the signal; nobody waits for that.
    source?.return?.().catch(() => {})
    if (turn && why) turn.reject(why)
    else failure = why
    turn?.resolve(over)
    turn = null
  }

  async function pull(): Promise<void> {
    try {
      source ??= open(gone.signal)[Symbol.asyncIterator]()
      const result = await source.next()
      if (gone.signal.aborted) return
      if (result.done) return end(null)
      ctx.lastEventId = cursorOf(result.value)
      turn?.resolve(result)
      turn = null
    } catch (error) {
      turn?.reject(error)
      turn = null
      end(null)
    }
  }

  return {
    next() {
      if (failure) {
        const why = failure
        failure = null
        return Promise.reject(why)
      }
      if (gone.signal.aborted) return Promise.resolve(over)
      turn = Promise.withResolvers()
      const { promise } = turn
      void pull()
      return promise
    },
    return() {
      end(null)
      return Promise.resolve(over)
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

const over = { done: true, value: undefined } as const

/** Node's timers end after 24 days, a token after 30. */
const timerMaxMs = 86_400_000

/**
 * Calls the listener once when the actor may not go on: at the end of the token's time, or within a second
 * where it is revoked. @returns what ends the watch
 */
export function watchActor(
  { access, clientAddress }: Pick<Context, 'access' | 'clientAddress'>,
  actor: Actor,
  listener: (why: Ending) => void,
): () => void {
  let timer: NodeJS.Timeout
  const unwatch = access.credentials.onRevoked(actor, clientAddress, tell)
  wait()

  function wait(): void {
    const leftMs = actor.expiresAt.getTime() - Date.now()
    timer = setTimeout(
      () => (leftMs > timerMaxMs ? wait() : tell('UNAUTHENTICATED')),
      Math.min(leftMs, timerMaxMs),
    )
    timer.unref()
  }

  function tell(why: Ending): void {
    stop()
    listener(why)
  }

  function stop(): void {
    clearTimeout(timer)
    unwatch()
  }
  return stop
}

/** @returns what gives the places back */
function takePlaces(streams: Context['streams'], { tokenId, merchantId }: Actor): () => void {
  const places = [
    { key: `token:${tokenId}`, max: limits.subscriptionsPerTokenMax, whose: 'token' },
    { key: `merchant:${merchantId}`, max: limits.subscriptionsPerMerchantMax, whose: 'merchant' },
  ]
  for (const { key, max, whose } of places) {
    if ((streams.get(key) ?? 0) < max) continue
    throw new GraphQLError(`A ${whose} has at most ${max} subscriptions at a time.`, {
      extensions: { code: 'TOO_MANY_SUBSCRIPTIONS', limit: max },
    })
  }
  for (const { key } of places) streams.set(key, (streams.get(key) ?? 0) + 1)
  return () => {
    for (const { key } of places) {
      const left = (streams.get(key) ?? 0) - 1
      if (left > 0) streams.set(key, left)
      else streams.delete(key)
    }
  }
}

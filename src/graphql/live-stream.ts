import { GraphQLError } from 'graphql'
import { actorOf } from '../access/actor.ts'
import type { Actor } from '../access/actor.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'

/**
 * A subscription's events, for as long as the caller may have them: it ends with a refusal when the token expires, the key
 * is regenerated, the account deactivated or the address no longer allowed; and at once when the reader leaves. Events are
 * pulled one by one, so a slow reader holds back the source instead of filling memory.
 * @param open the source; it must end soon after `signal` aborts
 * @param cursorOf where a reader goes on from after an event
 * @throws GraphQLError TOO_MANY_SUBSCRIPTIONS
 */
export function liveStream<T>(
  ctx: Context,
  open: (signal: AbortSignal) => AsyncGenerator<T, void, void>,
  cursorOf: (event: T) => string,
): AsyncGenerator<T, void, void> {
  const actor = actorOf(ctx)
  const leave = takeSlot(ctx, actor)
  const ending = new AbortController()
  const refused: { why?: DomainError } = {}
  const source = open(ending.signal)
  const unwatch = ctx.access.credentials.onRevoked(actor, ctx.clientAddress, (why) => {
    refused.why = new DomainError(why)
    ending.abort()
  })
  let isOpen = true
  const close = () => {
    if (!isOpen) return
    isOpen = false
    unwatch()
    leave()
    ending.abort()
  }
  const over = { done: true, value: undefined } as const
  return {
    async next() {
      if (!isOpen) return over
      try {
        const result = await source.next()
        if (refused.why) throw refused.why
        if (result.done) close()
        else ctx.lastEventId = cursorOf(result.value)
        return result
      } catch (error) {
        close()
        throw error
      }
    },
    async return() {
      close()
      await source.return()
      return over
    },
    async throw(error) {
      close()
      throw error
    },
    [Symbol.asyncIterator]() {
      return this
    },
    async [Symbol.asyncDispose]() {
      await this.return()
    },
  }
}

/** Counts the stream against its token and its merchant. @returns what gives the place back */
function takeSlot(ctx: Context, actor: Actor): () => void {
  const token = `token:${actor.tokenId}`
  const merchant = `merchant:${actor.merchantId}`
  const { streams } = ctx
  const count = (name: string) => streams.get(name) ?? 0
  const full =
    count(token) >= limits.subscriptionsPerTokenMax
      ? limits.subscriptionsPerTokenMax
      : count(merchant) >= limits.subscriptionsPerMerchantMax
        ? limits.subscriptionsPerMerchantMax
        : null
  if (full !== null) {
    throw new GraphQLError(`There are ${full} subscriptions already; end one first.`, {
      extensions: { code: 'TOO_MANY_SUBSCRIPTIONS' },
    })
  }
  const add = (name: string, change: number) => {
    const next = count(name) + change
    if (next > 0) streams.set(name, next)
    else streams.delete(name)
  }
  add(token, 1)
  add(merchant, 1)
  return () => {
    add(token, -1)
    add(merchant, -1)
  }
}

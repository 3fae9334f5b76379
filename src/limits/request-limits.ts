import type pg from 'pg'
import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import type { RequestPace } from '../config/request-pace.ts'
import type { Log } from '../telemetry/log.ts'
import { addressBlock } from '../shared/ip-whitelist.ts'
import { openWindowStore, type RateLimitState, SharedWindow, setRateLimitHeaders } from './window.ts'

/** The caller of a request, and the headers of the answer. */
export interface LimitedCaller {
  actor: { tokenId: string; merchantId: number } | null
  clientAddress: string | null
  responseHeaders: Map<string, string>
}

/**
 * The general limits of requests over all nodes: for one token, for one merchant over all its tokens, and for
 * one address without a token.
 * @see docs/design/rules.md#limits
 */
export interface RequestLimits {
  /** Counts a request, and adds the limits to the headers of the answer. @throws DomainError RATE_LIMITED */
  takeTurn(caller: LimitedCaller, kind: Kind, route: string): Promise<void>
  /** Does the same for the public pages of payment links. @throws DomainError RATE_LIMITED */
  takePage(caller: LimitedCaller, kind: 'view' | 'form'): Promise<void>
  /** Counts a change of the access to a merchant's account. @throws DomainError RATE_LIMITED */
  takeAccessChange(caller: LimitedCaller): Promise<void>
  /** Counts a request for money that a payment link makes. @throws DomainError RATE_LIMITED */
  takePrompt(linkId: number): Promise<void>
  /** Adds the limits to the headers of a request that was refused for another reason. Counts nothing. */
  setTurnHeaders(caller: LimitedCaller, kind: Kind, route: string): void
  /**
   * Counts the objects that a GraphQL operation may give.
   * @returns the limit that refused, or else the one with the least remaining
   */
  takeObjects(caller: LimitedCaller, objects: number): Promise<RateLimitState>
}

type Kind = 'write' | 'read'
type Counted = Kind | 'objects'

/**
 * Multiples of the limit of public routes: how often an address may view pages of payment links and send
 * their forms, and how often one link may request money. Choice: a carrier puts thousands of telephones
 * behind one address, and one address alone must not use up a link.
 */
export const linkFactors = { views: 100, forms: 5, prompts: 10 } as const

/**
 * The limit of changes of the access to an account: 60 a minute. Choice: each change makes the merchant's
 * payments wait.
 */
export const accessPace = { max: 60, windowS: 60 } as const

export function createRequestLimits(
  pace: Omit<RequestPace, 'inFlightMax' | 'promptsPerPhone'>,
  { pool, log }: { pool: Pick<pg.Pool, 'query'>; log: Log },
): RequestLimits {
  const store = openWindowStore(pool, log)
  const both = (name: string, max: number, windowS: number) => {
    const ofToken = { name: `token-${name}`, max: Math.ceil(max * limits.tokenShare), windowS }
    return {
      whole: new SharedWindow({ name, max, windowS }, store),
      token: new SharedWindow(ofToken, store),
    }
  }
  const limiters = {
    write: both('writes', pace.writesPerSecond, 1),
    read: both('reads', pace.readsPerSecond, 1),
    objects: both('objects', pace.objectsPerMinute, 60),
  }
  const asks = new SharedWindow({ name: 'public', max: pace.publicPerMinute, windowS: 60 }, store, true)

  const times = (name: string, factor: number) =>
    new SharedWindow({ name, max: pace.publicPerMinute * factor, windowS: 60 }, store)
  const pages = { view: times('views', linkFactors.views), form: times('forms', linkFactors.forms) }
  const prompts = times('prompts', linkFactors.prompts)
  const accessChanges = new SharedWindow({ name: 'access-changes', ...accessPace }, store)

  /**
   * Returns the windows to count in. The token's window comes first: if it is full, the merchant's window
   * counts nothing.
   */
  function keysOf({ actor, clientAddress }: LimitedCaller, kind: Counted, route: string) {
    const { whole, token } = limiters[kind]
    if (actor) return [[token, actor.tokenId] as const, [whole, `merchant ${actor.merchantId}`] as const]
    return [[kind === 'objects' ? whole : asks, `address ${addressBlock(clientAddress)} ${route}`] as const]
  }
  async function take(
    caller: LimitedCaller,
    kind: Counted,
    amount: number,
    route: string,
  ): Promise<RateLimitState> {
    const states = []
    for (const [limiter, key] of keysOf(caller, kind, route)) {
      const state = await limiter.take(key, amount)
      setRateLimitHeaders(caller.responseHeaders, limiter.policy.name, state)
      if (!state.allowed) return state
      states.push(state)
    }
    return states.reduce((least, state) => (state.remaining < least.remaining ? state : least))
  }
  function admit({ allowed, resetS }: RateLimitState): void {
    if (!allowed) throw new DomainError('RATE_LIMITED', undefined, { retryAfterS: resetS })
  }
  return {
    takeTurn: async (caller, kind, route) => admit(await take(caller, kind, 1, route)),
    async takePage({ clientAddress, responseHeaders }, kind) {
      const state = await pages[kind].take(`address ${addressBlock(clientAddress)}`, 1)
      setRateLimitHeaders(responseHeaders, pages[kind].policy.name, state)
      admit(state)
    },
    async takeAccessChange({ actor, responseHeaders }) {
      const state = await accessChanges.take(`merchant ${actor?.merchantId}`, 1)
      setRateLimitHeaders(responseHeaders, accessChanges.policy.name, state)
      admit(state)
    },
    takePrompt: async (linkId) => admit(await prompts.take(`link ${linkId}`, 1)),
    setTurnHeaders(caller, kind, route) {
      for (const [limiter, key] of keysOf(caller, kind, route))
        setRateLimitHeaders(caller.responseHeaders, limiter.policy.name, limiter.look(key))
    },
    takeObjects: (caller, objects) => take(caller, 'objects', objects, 'graphql'),
  }
}

import type pg from 'pg'
import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import type { RequestPace } from '../config/request-pace.ts'
import type { Log } from '../telemetry/log.ts'
import { addressBlock } from '../shared/ip-whitelist.ts'
import { openWindowStore, type RateLimitState, SharedWindow, setRateLimitHeaders } from './window.ts'

/** The caller of a request, and the headers of its answer. */
export interface LimitedCaller {
  actor: { tokenId: string; merchantId: number } | null
  clientAddress: string | null
  responseHeaders: Map<string, string>
}

/**
 * The general limits of requests, over all nodes: of a token, of its merchant over all tokens, and of an
 * address without one.
 * @see docs/design/rules.md#limits
 */
export interface RequestLimits {
  /** Lets a request pass, and tells its caller how many more may come. @throws DomainError RATE_LIMITED */
  takeTurn(caller: LimitedCaller, kind: Kind, route: string): Promise<void>
  /** The same of the public pages of payment links. @throws DomainError RATE_LIMITED */
  takePage(caller: LimitedCaller, kind: 'view' | 'form'): Promise<void>
  /** Lets a merchant change who has access to its account. @throws DomainError RATE_LIMITED */
  takeAccessChange(caller: LimitedCaller): Promise<void>
  /** Lets a payment link ask somebody. @throws DomainError RATE_LIMITED */
  takePrompt(linkId: number): Promise<void>
  /** Tells who was turned away for another reason how many may come. Nothing is counted. */
  setTurnHeaders(caller: LimitedCaller, kind: Kind, route: string): void
  /** Counts what a GraphQL operation may give. @returns the limit that leaves least */
  takeObjects(caller: LimitedCaller, objects: number): Promise<RateLimitState>
}

type Kind = 'write' | 'read'
type Counted = Kind | 'objects'

/**
 * So many times as often as an address may ask a public route may it look at pages of links and send their
 * forms, and may a link ask somebody. Choice: a carrier puts thousands of telephones behind one address, and
 * one address alone must not use up a link.
 */
export const linkFactors = { views: 100, forms: 5, prompts: 10 } as const

/**
 * Changes of who has access to an account: one a second, and as many at once as a minute has. Payments of the
 * merchant wait for each. Choice.
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

  /** Whose points are used, the token's first: what it is refused its merchant still has. */
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

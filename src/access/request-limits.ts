import { DomainError } from '../shared/errors.ts'
import type { RequestPace } from '../shared/pace.ts'
import type { Actor } from './actor.ts'
import { type Allowance, Allowances } from './allowances.ts'
import { addressBlock } from './ip-whitelist.ts'
import { type RateLimitState, tellRateLimit } from './rate-limit.ts'

/** Who asks, and where its answer's headers are kept. */
export interface Caller {
  actor: Actor | null
  clientAddress: string | null
  responseHeaders: Map<string, string>
}

/**
 * The general limits of requests. Choice: counted by each process for itself, without the database. They
 * protect the process, and a merchant's share of it; several nodes bear as many times more. (Attempts at a
 * secret are counted over all nodes: `takeHit`.)
 * @see design: reliability, section 7
 */
export interface RequestLimits {
  /** Lets a request pass, and tells its caller how many more may come. @throws DomainError RATE_LIMITED */
  takeTurn(caller: Caller, kind: 'write' | 'read', route: string): void
  /** Counts what a GraphQL operation may give. */
  takeObjects(caller: Caller, objects: number): RateLimitState
}

export function createRequestLimits(pace: Omit<RequestPace, 'inFlightMax'>): RequestLimits {
  const allowances = new Allowances()
  const policies = {
    write: { name: 'writes', max: pace.writesPerSecond, refillMs: 1_000 },
    read: { name: 'reads', max: pace.readsPerSecond, refillMs: 1_000 },
    public: { name: 'public', max: pace.publicPerMinute, refillMs: 60_000 },
    objects: { name: 'objects', max: pace.objectsPerMinute, refillMs: 60_000 },
  }
  const take = (caller: Caller, policy: Allowance & { name: string }, amount: number, route: string) => {
    const { actor, clientAddress } = caller
    const whose = actor ? `merchant ${actor.merchantId}` : `address ${addressBlock(clientAddress)} ${route}`
    const state = stateOf(policy, allowances.take(`${policy.name} ${whose}`, amount, policy))
    tellRateLimit(caller.responseHeaders, policy.name, state)
    return state
  }
  return {
    takeTurn(caller, kind, route) {
      const { allowed, resetS } = take(caller, policies[caller.actor ? kind : 'public'], 1, route)
      if (!allowed) throw new DomainError('RATE_LIMITED', undefined, { retryAfterS: resetS })
    },
    takeObjects: (caller, objects) => take(caller, policies.objects, objects, 'graphql'),
  }
}

/** The state of an allowance, in the words of the answer's headers. */
function stateOf({ max, refillMs }: Allowance, left: ReturnType<Allowances['take']>): RateLimitState {
  const { remaining, retryAfterS } = left
  return {
    allowed: retryAfterS === 0,
    limit: max,
    windowS: Math.ceil(refillMs / 1_000),
    remaining,
    resetS: retryAfterS || Math.ceil(((max - remaining) * refillMs) / max / 1_000),
  }
}

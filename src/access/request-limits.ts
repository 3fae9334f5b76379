import type { Batches } from '../database/batch.ts'
import { DomainError } from '../shared/errors.ts'
import type { RequestPace } from '../shared/pace.ts'
import type { Log } from '../telemetry/log.ts'
import type { Actor } from './actor.ts'
import type { Allowance, Left } from './allowances.ts'
import { addressBlock } from './ip-whitelist.ts'
import { type RateLimitState, tellRateLimit } from './rate-limit.ts'
import { SharedAllowances } from './shared-allowances.ts'

/** Who asks, and where its answer's headers are kept. */
export interface Caller {
  actor: Actor | null
  clientAddress: string | null
  responseHeaders: Map<string, string>
}

/**
 * The general limits of requests, over all nodes: of a merchant, whichever token it uses, and of an address
 * without one.
 * @see design: reliability, section 7
 */
export interface RequestLimits {
  /** Lets a request pass, and tells its caller how many more may come. @throws DomainError RATE_LIMITED */
  takeTurn(caller: Caller, kind: Kind, route: string): Promise<void>
  /** Tells who was turned away for another reason how many may come. Nothing is counted. */
  tellTurns(caller: Caller, kind: Kind, route: string): void
  /** Counts what a GraphQL operation may give. */
  takeObjects(caller: Caller, objects: number): Promise<RateLimitState>
}

type Kind = 'write' | 'read'

export function createRequestLimits(
  pace: Omit<RequestPace, 'inFlightMax'>,
  { batches, log }: { batches: Pick<Batches, 'run'>; log: Log },
): RequestLimits {
  const allowances = new SharedAllowances(batches, log)
  const policies = {
    write: { name: 'writes', max: pace.writesPerSecond, refillMs: 1_000 },
    read: { name: 'reads', max: pace.readsPerSecond, refillMs: 1_000 },
    public: { name: 'public', max: pace.publicPerMinute, refillMs: 60_000 },
    objects: { name: 'objects', max: pace.objectsPerMinute, refillMs: 60_000 },
  }
  const nameOf = ({ actor, clientAddress }: Caller, { name }: Policy, route: string) =>
    `${name} ${actor ? `merchant ${actor.merchantId}` : `address ${addressBlock(clientAddress)} ${route}`}`
  const policyOf = ({ actor }: Caller, kind: Kind) => policies[actor ? kind : 'public']
  const tell = ({ responseHeaders }: Caller, policy: Policy, left: Left) => {
    const state = stateOf(policy, left)
    tellRateLimit(responseHeaders, policy.name, state)
    return state
  }
  const take = async (caller: Caller, policy: Policy, amount: number, route: string) =>
    tell(caller, policy, await allowances.take(nameOf(caller, policy, route), amount, policy))
  return {
    async takeTurn(caller, kind, route) {
      const { allowed, resetS } = await take(caller, policyOf(caller, kind), 1, route)
      if (!allowed) throw new DomainError('RATE_LIMITED', undefined, { retryAfterS: resetS })
    },
    tellTurns(caller, kind, route) {
      const policy = policyOf(caller, kind)
      tell(caller, policy, allowances.look(nameOf(caller, policy, route), policy))
    },
    takeObjects: (caller, objects) => take(caller, policies.objects, objects, 'graphql'),
  }
}

type Policy = Allowance & { name: string }

/** The state of an allowance, in the words of the answer's headers. */
function stateOf({ max, refillMs }: Allowance, left: Left): RateLimitState {
  const { remaining, retryAfterS } = left
  return {
    allowed: retryAfterS === 0,
    limit: max,
    windowS: Math.ceil(refillMs / 1_000),
    remaining,
    resetS: retryAfterS || Math.ceil(((max - remaining) * refillMs) / max / 1_000),
  }
}

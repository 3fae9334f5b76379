import { limits } from '../shared/limits.ts'
import { RecentMap } from './recent-map.ts'

/** What may be used at once, and the time in which all of it comes back. */
export interface Allowance {
  max: number
  refillMs: number
}

/** What is left after a use. */
export interface Left {
  remaining: number
  /** Whole seconds after which the same use is allowed; 0 where it was. */
  retryAfterS: number
}

/**
 * How much each name has left of its allowance, in this process: what it bounds is the work of this process.
 * (Attempts at a secret are counted over all nodes, in `rate-limit.ts`.)
 */
export class Allowances {
  readonly #used = new RecentMap<string, { used: number; at: number }>(limits.allowanceNamesMax)

  /** Uses an amount, unless less than that is left: then nothing is used. */
  take(name: string, amount: number, { max, refillMs }: Allowance, now = performance.now()): Left {
    const known = this.#used.get(name)
    const used = known ? Math.max(0, known.used - ((now - known.at) * max) / refillMs) : 0
    const missing = used + amount - max
    // One that asks for more than there can ever be waits for all of it, and is refused again.
    if (missing > 0) {
      const waitMs = (Math.min(missing, used) * refillMs) / max
      return { remaining: Math.floor(max - used), retryAfterS: Math.max(1, Math.ceil(waitMs / 1_000)) }
    }
    this.#used.set(name, { used: used + amount, at: now })
    return { remaining: Math.floor(max - used - amount), retryAfterS: 0 }
  }
}

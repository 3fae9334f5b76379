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

/** How much each name has used of its allowance, as far as this process knows. */
export class Allowances {
  readonly #used = new RecentMap<string, { used: number; at: number }>(limits.allowanceNamesMax)

  /** Uses an amount, unless less than that is left: then nothing is used. */
  take(name: string, amount: number, allowance: Allowance, now = performance.now()): Left {
    const left = this.look(name, amount, allowance, now)
    if (left.retryAfterS === 0) this.learn(name, this.#usedBy(name, allowance, now) + amount, now)
    return left
  }

  /** What would be left after a use. */
  look(name: string, amount: number, allowance: Allowance, now = performance.now()): Left {
    return leftAfter(amount, this.#usedBy(name, allowance, now), allowance)
  }

  /** Goes on from what somebody else has counted. */
  learn(name: string, used: number, now = performance.now()): void {
    this.#used.set(name, { used, at: now })
  }

  #usedBy(name: string, { max, refillMs }: Allowance, now: number): number {
    const known = this.#used.get(name)
    return known ? Math.max(0, known.used - ((now - known.at) * max) / refillMs) : 0
  }
}

/** What is left after a use, where so much was used before. */
function leftAfter(amount: number, used: number, allowance: Allowance): Left {
  if (used + amount <= allowance.max) return { remaining: freeOf(used + amount, allowance), retryAfterS: 0 }
  return { remaining: freeOf(used, allowance), retryAfterS: waitOf(amount, used, allowance) }
}

/** Whole units that are free where so much is used. */
function freeOf(used: number, { max }: Allowance): number {
  return Math.max(0, Math.floor(max - used))
}

/** Seconds until an amount is free, at least one, where so much is used. */
export function waitOf(amount: number, used: number, { max, refillMs }: Allowance): number {
  // What asks for more than there can ever be waits for all of it, and is refused again.
  const waitMs = (Math.min(used + amount - max, used) * refillMs) / max
  return Math.max(1, Math.ceil(waitMs / 1_000))
}

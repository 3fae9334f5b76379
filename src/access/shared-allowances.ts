import { type Batches, shareStatement } from '../database/batch.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import type { Log } from '../telemetry/log.ts'
import { type Allowance, Allowances, type Left, waitOf } from './allowances.ts'
import { RecentMap } from './recent-map.ts'

/**
 * How much each name has left of its allowance, over all nodes: the database decides, and callers that ask at
 * once share a statement. Who asks again and again is given in advance what was used in a moment before, for
 * as long a moment; what is left of it then is lost. Who is known to have used up all is told so without
 * asking. While the database does not answer, each process goes on by itself from what it knows: a limit is
 * no reason to be down.
 * Choice: our own statement, of one round trip for many callers. rate-limiter-flexible, the usual library,
 * asks for each caller alone (design: ecosystem, row 15), and is not among the packages.
 */
export class SharedAllowances {
  readonly #batches: Pick<Batches, 'run'>
  readonly #log: Log
  readonly #known = new Allowances()
  readonly #advances = new RecentMap<string, Advance>(limits.allowanceNamesMax)
  #isAlone = false

  constructor(batches: Pick<Batches, 'run'>, log: Log) {
    this.#batches = batches
    this.#log = log
  }

  /** Uses an amount, unless less than that is left: then nothing is used. */
  async take(name: string, amount: number, allowance: Allowance): Promise<Left> {
    const advance = this.#advanceOf(name, allowance)
    if (advance.free >= amount) {
      advance.free -= amount
      advance.used += amount
      return this.look(name, allowance)
    }
    // Others can only have used more.
    const known = this.#known.look(name, amount, allowance)
    if (known.retryAfterS > 0) return known
    const more = Math.max(0, advance.wish - amount)
    advance.wish = 0
    advance.used += amount
    try {
      const { allowed, used } = await this.#ask({ name, amount, more, allowance })
      this.#known.learn(name, used)
      this.#isAlone = false
      if (!allowed) return { ...this.look(name, allowance), retryAfterS: waitOf(amount, used, allowance) }
      advance.free += allowed - amount
      return this.look(name, allowance)
    } catch (error) {
      if (!this.#isAlone) this.#log.warn({ err: error }, 'this process counts requests by itself')
      this.#isAlone = true
      return this.#known.take(name, amount, allowance)
    }
  }

  /** What is left, as far as this process knows. */
  look(name: string, allowance: Allowance): Left {
    const { remaining } = this.#known.look(name, 0, allowance)
    const free = this.#advances.get(name)?.free ?? 0
    return { remaining: Math.min(allowance.max, remaining + Math.floor(free)), retryAfterS: 0 }
  }

  #advanceOf(name: string, { max }: Allowance): Advance {
    const now = performance.now()
    const last = this.#advances.get(name)
    if (last && now < last.until) return last
    const isRecent = last !== undefined && now < last.until + limits.allowanceAdvanceMs
    const wish = isRecent ? Math.min(last.used, Math.floor(max / 10)) : 0
    const next = { free: 0, used: 0, wish, until: now + limits.allowanceAdvanceMs }
    this.#advances.set(name, next)
    return next
  }

  /**
   * Asks for an amount, and for more of it in advance where there is as much.
   * @returns how much is allowed, or 0. @throws Error where the database does not answer in time
   */
  async #ask(wish: Wish): Promise<{ allowed: number; used: number }> {
    const { name, amount, more, allowance } = wish
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(
      () => late.reject(new Error('the database did not count in time')),
      limits.allowanceWaitMs,
    )
    const asked = this.#batches.run(takeAllowances, { ...allowance, name, amount: amount + more })
    try {
      const { allowed, used } = await Promise.race([asked, late.promise])
      if (allowed || more === 0) return { allowed: allowed ? amount + more : 0, used }
    } finally {
      clearTimeout(timer)
    }
    return this.#ask({ ...wish, more: 0 })
  }
}

/** What a process may give out by itself for a moment. */
interface Advance {
  free: number
  /** What was used meanwhile. */
  used: number
  /** What is to be asked for with the next use. */
  wish: number
  /** Of the process's own clock. */
  until: number
}

interface Wish {
  name: string
  amount: number
  more: number
  allowance: Allowance
}

interface Use extends Allowance {
  name: string
  amount: number
}

interface Counted {
  allowed: boolean
  /** Of the allowance, this use included where it was allowed. */
  used: number
}

const takeAllowances = shareStatement<Use, Counted>(async (pool, uses) => {
  const { rows } = await pool.query<Counted>({
    name: 'take-allowances',
    text: 'SELECT allowed, used FROM take_allowances($1, $2, $3, $4) ORDER BY place',
    values: [
      uses.map(({ name }) => name),
      uses.map(({ amount }) => amount),
      uses.map(({ max }) => max),
      uses.map(({ refillMs }) => refillMs),
    ],
  })
  invariant(rows.length === uses.length, 'each use is answered')
  return rows
})

import { type Batches, shareStatement } from '../database/batch.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import type { Log } from '../telemetry/log.ts'
import { type Allowance, Allowances, freeOf, type Left, waitOf } from './allowances.ts'

/**
 * How much each name has left of its allowance, over all nodes: the database decides, and callers that ask at
 * once share a statement. Who is known to have used up all is told so without asking. While the database
 * does not answer, each process goes on by itself from what it knows: a limit is no reason to be down.
 * Choice: our own statement, of one round trip for many callers. rate-limiter-flexible, the usual library,
 * asks for each caller alone (design: ecosystem, row 15), and is not among the packages.
 */
export class SharedAllowances {
  readonly #batches: Pick<Batches, 'run'>
  readonly #log: Log
  readonly #known = new Allowances()
  #isAlone = false

  constructor(batches: Pick<Batches, 'run'>, log: Log) {
    this.#batches = batches
    this.#log = log
  }

  /** Uses an amount, unless less than that is left: then nothing is used. */
  async take(name: string, amount: number, allowance: Allowance): Promise<Left> {
    // Others can only have used more.
    const known = this.#known.look(name, amount, allowance)
    if (known.retryAfterS > 0) return known
    try {
      const { allowed, used } = await this.#ask({ ...allowance, name, amount })
      this.#known.learn(name, used)
      this.#isAlone = false
      const retryAfterS = allowed ? 0 : waitOf(amount, used, allowance)
      return { remaining: freeOf(used, allowance), retryAfterS }
    } catch (error) {
      if (!this.#isAlone) this.#log.warn({ err: error }, 'this process counts requests by itself')
      this.#isAlone = true
      return this.#known.take(name, amount, allowance)
    }
  }

  /** What is left, as far as this process knows. */
  look(name: string, allowance: Allowance): Left {
    return this.#known.look(name, 0, allowance)
  }

  /** @throws Error where the database does not answer in time */
  async #ask(use: Use): Promise<Counted> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(
      () => late.reject(new Error('the database did not count in time')),
      limits.allowanceWaitMs,
    )
    try {
      return await Promise.race([this.#batches.run(takeAllowances, use), late.promise])
    } finally {
      clearTimeout(timer)
    }
  }
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

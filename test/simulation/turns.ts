import { setImmediate as nextTurn } from 'node:timers/promises'
import type fc from 'fast-check'
import type pg from 'pg'

/**
 * Lets a scheduler of fast-check decide, before every statement and every call to the operator, which side
 * goes on. One side goes on at a time, up to its next such point, so that the same seed makes the same order
 * on any machine. (PostgreSQL orders statements that overlap in time; real parallel calls try those
 * elsewhere.)
 */
export class Turns {
  readonly #scheduler: fc.Scheduler
  readonly #underWay = new Set<Promise<unknown>>()
  /** The labels of the turns, in their order. */
  readonly taken: string[] = []

  constructor(scheduler: fc.Scheduler) {
    this.#scheduler = scheduler
  }

  /** Waits for a turn. */
  async point(label: string): Promise<void> {
    await this.#scheduler.schedule(Promise.resolve(), label)
    this.taken.push(label)
  }

  /** Does a step of the test itself when its turn comes. */
  async step<T>(label: string, work: () => Promise<T>): Promise<T> {
    await this.point(label)
    return this.#track(work())
  }

  /** The pool of one side: each statement, and each transaction as a whole, waits for its turn. */
  pool(side: string, pool: pg.Pool): pg.Pool {
    const query = async (config: pg.QueryConfig | string, values?: unknown[]) => {
      await this.point(`${side} ${typeof config === 'string' ? config.slice(0, 30) : config.name}`)
      return this.#track(pool.query(config as string, values as never))
    }
    const connect = async () => {
      await this.point(`${side} transaction`)
      const client = await pool.connect()
      const done = Promise.withResolvers<void>()
      void this.#track(done.promise)
      return Object.assign(Object.create(client) as pg.PoolClient, {
        release: () => {
          client.release()
          done.resolve()
        },
      })
    }
    return { query, connect } as unknown as pg.Pool
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work)
    const end = () => void this.#underWay.delete(work)
    work.then(end, end)
    return work
  }

  /** Runs all sides to their ends. @returns the result of each side */
  async run<T>(...sides: (() => Promise<T>)[]): Promise<PromiseSettledResult<T>[]> {
    let isOver = false
    const ends = Promise.allSettled(sides.map((side) => side())).finally(() => (isOver = true))
    await this.#quiet()
    while (!isOver) {
      // A side that waits for anything but its turn would wait for ever.
      if (this.#scheduler.count() === 0) throw new Error(`no side moves after ${this.taken.join(', ')}`)
      await this.#scheduler.waitOne()
      await this.#quiet()
    }
    return ends
  }

  /** Waits until no side moves: all wait for a turn, or have ended. */
  async #quiet(): Promise<void> {
    for (let calm = 0; calm < calmTurns; calm += 1) {
      await nextTurn()
      if (this.#underWay.size === 0) continue
      await Promise.allSettled(this.#underWay)
      calm = -1
    }
  }
}

/** Turns of the event loop after which every shared statement has left. */
const calmTurns = 4

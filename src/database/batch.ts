import DataLoader from 'dataloader'
import type { Pool } from 'pg'
import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import { isConflict } from './transact.ts'

/** One call for many items: gives each its own result, in the order of the items. */
export type Many<Item, Result> = (pool: Pool, items: readonly Item[]) => Promise<readonly Result[]>

/** A statement that concurrent callers share, written beside the verb that needs it. */
export interface SharedStatement<Item, Result> {
  readonly many: Many<Item, Result>
}

/** The shared statements of a service under way. */
export interface Batches {
  /**
   * Joins the next run of a shared statement: an idle service answers at once, a busy one batches by itself,
   * without a timer; each caller is answered after its commit. (design: performance, sections 2 and 3)
   * An item whose own data breaks the statement fails alone: the others run again one by one. A statement
   * that PostgreSQL undid for the sake of another one (deadlock) runs again.
   * @throws DomainError OVERLOADED where too many wait already
   */
  run<Item, Result>(statement: SharedStatement<Item, Result>, item: Item): Promise<Result>
  /** Resolves once nothing waits and nothing runs. */
  idle(): Promise<void>
}

export interface BatchBounds {
  /** Items of one statement. */
  sizeMax: number
  /** Statements under way at once; what arrives meanwhile shares the next one. */
  lanesMax: number
  /** Items that may wait. */
  queueMax: number
}

const usual: BatchBounds = {
  sizeMax: limits.batchSizeMax,
  lanesMax: limits.batchLanesMax,
  queueMax: limits.batchQueueMax,
}

/** Declares a shared statement. */
export function shareStatement<Item, Result>(many: Many<Item, Result>): SharedStatement<Item, Result> {
  return { many }
}

export function openBatches(pool: Pool, bounds = usual): Batches {
  const batches = new Map<object, Batch<never, unknown>>()
  return {
    run<Item, Result>(statement: SharedStatement<Item, Result>, item: Item) {
      let batch = batches.get(statement) as Batch<Item, Result> | undefined
      if (!batch) {
        batch = createBatch((items) => statement.many(pool, items), bounds)
        batches.set(statement, batch)
      }
      return batch.run(item)
    },
    async idle() {
      await Promise.all([...batches.values()].map((batch) => batch.idle()))
    },
  }
}

interface Batch<Item, Result> {
  run(item: Item): Promise<Result>
  idle(): Promise<void>
}

type Call<Item, Result> = (items: readonly Item[]) => Promise<readonly Result[]>

function createBatch<Item, Result>(call: Call<Item, Result>, bounds: BatchBounds): Batch<Item, Result> {
  const lanes = createLanes(bounds.lanesMax)
  let waiting = 0
  const loader = new DataLoader<Item, Result>(
    async (items) => {
      try {
        return await answer(call, items)
      } finally {
        lanes.leave()
      }
    },
    { cache: false, maxBatchSize: bounds.sizeMax, batchScheduleFn: (dispatch) => lanes.enter(dispatch) },
  )
  return {
    async run(item) {
      if (waiting >= bounds.queueMax) throw new DomainError('OVERLOADED', undefined, { retryAfterS: 1 })
      waiting += 1
      try {
        return await loader.load(item)
      } finally {
        waiting -= 1
      }
    },
    idle: lanes.idle,
  }
}

const conflictRetriesMax = 3

async function answer<Item, Result>(
  call: Call<Item, Result>,
  items: readonly Item[],
  retries: number = conflictRetriesMax,
): Promise<(Result | Error)[]> {
  try {
    return [...(await call(items))]
  } catch (error) {
    if (retries > 0 && isConflict(error)) return answer(call, items, retries - 1)
    if (items.length === 1 || !isDataError(error)) return items.map(() => asError(error))
    const answers: (Result | Error)[] = []
    for (const item of items) answers.push(...(await answer(call, [item])))
    return answers
  }
}

/**
 * SQLSTATE classes 22 and 23: data that one item brought, and the statement left nothing behind. Anything
 * else (a lost connection above all) says nothing about the commit, so nothing is sent again.
 */
function isDataError(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && /^2[23]/.test(String(error.code))
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/** At most `max` batches run; the next leaves when one ends, and grows until then. */
function createLanes(max: number) {
  const queue: (() => void)[] = []
  const idlers: (() => void)[] = []
  let taken = 0
  return {
    enter(dispatch: () => void): void {
      if (taken >= max) {
        queue.push(dispatch)
        return
      }
      taken += 1
      setImmediate(dispatch)
    },
    leave(): void {
      const next = queue.shift()
      if (next) {
        setImmediate(next)
        return
      }
      taken -= 1
      if (taken === 0) for (const wake of idlers.splice(0)) wake()
    },
    idle: (): Promise<void> => (taken === 0 ? Promise.resolve() : new Promise((wake) => idlers.push(wake))),
  }
}

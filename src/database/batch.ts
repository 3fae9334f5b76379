import { DatabaseError, type Pool } from 'pg'
import { DomainError } from '../shared/errors.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import { isConflict } from './transact.ts'

/** Requests of one merchant in one statement, while other merchants wait. */
const batchShareMax = 16
const batchConcurrencyMax = 2
const batchQueueMax = 2_000

/**
 * One call for many items: gives each its own result, in the order of the items.
 * @param waits false where the call must not wait for an owner whose access is being changed: it then fails
 *   at once, with nothing done, and names these owners (`share_access`)
 */
export type Many<Item, Result> = (
  pool: Pool,
  items: readonly Item[],
  waits: boolean,
) => Promise<readonly Result[]>

/** A statement that concurrent callers share, written beside the verb that needs it. */
export interface SharedStatement<Item, Result> {
  readonly many: Many<Item, Result>
  /** Whose item it is, where items of one must not keep those of others waiting. */
  readonly ownerOf: ((item: Item) => unknown) | undefined
  /** How long the first waits for others to come along, where nobody waits for the result; else 0. */
  readonly pauseMs: number
}

/** The shared statements of a service under way. */
export interface Batches {
  /**
   * Joins the next run of a shared statement: an idle service answers at once, a busy one batches by itself,
   * without a timer; each caller is answered after its commit. (design: performance, sections 2 and 3)
   * An item whose own data breaks the statement fails alone: the others run again one by one. A statement
   * that PostgreSQL undid for the sake of another one (deadlock) runs again. Items of an owner whose access
   * is being changed wait in a statement of their own, one of each owner at a time.
   * @throws DomainError OVERLOADED where too many wait already
   */
  run<Item, Result>(statement: SharedStatement<Item, Result>, item: Item): Promise<Result>
  /** Resolves once nothing waits and nothing runs. */
  idle(): Promise<void>
}

export interface BatchBounds {
  /** Items of one statement. */
  sizeMax: number
  /** Of these, items of one owner while others wait. */
  shareMax: number
  /** Statements under way at once. */
  concurrencyMax: number
  /** Items that may wait. */
  queueMax: number
  /** No statement waits longer for others to come along; 0 where time stands still. */
  pauseMaxMs: number
}

export const usualBounds: BatchBounds = {
  sizeMax: limits.batchSizeMax,
  shareMax: batchShareMax,
  concurrencyMax: batchConcurrencyMax,
  queueMax: batchQueueMax,
  pauseMaxMs: Number.POSITIVE_INFINITY,
}

/** Declares a shared statement. */
export function shareStatement<Item, Result>(
  many: Many<Item, Result>,
  ownerOf?: (item: Item) => unknown,
  pauseMs = 0,
): SharedStatement<Item, Result> {
  return { many, ownerOf, pauseMs }
}

export function openBatches(pool: Pool, bounds = usualBounds): Batches {
  const batches = new Map<object, Batch<never, unknown>>()
  return {
    run<Item, Result>(statement: SharedStatement<Item, Result>, item: Item) {
      let batch = batches.get(statement) as Batch<Item, Result> | undefined
      if (!batch) {
        batch = createBatch((items, waits) => statement.many(pool, items, waits), statement, bounds)
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

type Call<Item, Result> = (items: readonly Item[], waits: boolean) => Promise<readonly Result[]>

interface Waiting<Item, Result> {
  item: Item
  owner: unknown
  answered: PromiseWithResolvers<Result>
}

function createBatch<Item, Result>(
  call: Call<Item, Result>,
  { ownerOf, ...statement }: Pick<SharedStatement<Item, Result>, 'ownerOf' | 'pauseMs'>,
  bounds: BatchBounds,
): Batch<Item, Result> {
  const idlers: (() => void)[] = []
  const pauseMs = Math.min(statement.pauseMs, bounds.pauseMaxMs)
  let queue: Waiting<Item, Result>[] = []
  let underWay = 0
  let running = 0
  /** Lanes that are about to take what waits: whatever comes until then goes along. */
  let leaving = 0

  /**
   * Whether a further statement is worth its commit: the first one always, another once as many wait as are
   * under way. Fewer wait for what is under way to return, and then go together with whom it answers.
   */
  function isWorthIt(waiting: number): boolean {
    return waiting > 0 && waiting >= Math.min(underWay, bounds.sizeMax)
  }

  function startStatement(): void {
    if (running >= bounds.concurrencyMax || !isWorthIt(queue.length - leaving * bounds.sizeMax)) return
    leaving += 1
    running += 1
    const leave = () => {
      leaving -= 1
      void drive()
    }
    if (isEarly()) setTimeout(leave, pauseMs)
    else setImmediate(leave)
  }

  /** Whether more may come along before anybody misses those that wait. */
  function isEarly(): boolean {
    return pauseMs > 0 && queue.length < bounds.sizeMax
  }

  /** Runs statements, one after another, for as long as enough wait. */
  async function drive(): Promise<void> {
    for (let isFirst = true; isWorthIt(queue.length) && (isFirst || !isEarly()); isFirst = false) {
      const [chosen, left] = chooseFairly(queue, bounds)
      queue = left
      underWay += chosen.length
      startStatement()
      await run(chosen)
      underWay -= chosen.length
      // Those who were just answered may ask for more.
      await new Promise((turn) => setImmediate(turn))
    }
    running -= 1
    startStatement()
    resolveIdlers()
  }

  /** One statement for those who were chosen, without the owners whose access is being changed. */
  async function run(chosen: readonly Waiting<Item, Result>[]): Promise<void> {
    for (let left = chosen; left.length > 0; ) {
      const locked = await serve(left, false)
      if (!locked) return
      aside.add(left.filter(({ owner }) => locked.has(owner)))
      left = left.filter(({ owner }) => !locked.has(owner))
    }
  }

  /** Runs one statement and answers its callers. @returns the owners for whom it would have to wait */
  async function serve(
    chosen: readonly Waiting<Item, Result>[],
    waits: boolean,
  ): Promise<ReadonlySet<unknown> | null> {
    const items = chosen.map(({ item }) => item)
    const answers = await answer(call, items, waits)
    if (answers instanceof Set) return answers
    for (const [index, { answered }] of chosen.entries()) {
      const result = answers[index] as Result | Error
      if (result instanceof Error) answered.reject(result)
      else answered.resolve(result)
    }
    return null
  }

  const aside = openAside<Waiting<Item, Result>>(
    (waiting) => serve(waiting, true),
    bounds.sizeMax,
    () => resolveIdlers(),
  )

  function resolveIdlers(): void {
    if (running === 0 && aside.count() === 0) for (const notify of idlers.splice(0)) notify()
  }

  return {
    async run(item) {
      if (queue.length + underWay + aside.count() >= bounds.queueMax) {
        throw new DomainError('OVERLOADED', undefined, { retryAfterS: 1 })
      }
      const answered = Promise.withResolvers<Result>()
      queue.push({ item, owner: ownerOf?.(item), answered })
      startStatement()
      return answered.promise
    },
    idle: () =>
      running === 0 && aside.count() === 0 ? Promise.resolve() : new Promise((notify) => idlers.push(notify)),
  }
}

/** Items that wait for their owner, apart from all others: an owner takes one session of the pool at most. */
function openAside<T extends { owner: unknown }>(
  serve: (waiting: readonly T[]) => Promise<unknown>,
  sizeMax: number,
  onEmpty: () => void,
) {
  const queues = new Map<unknown, T[]>()
  let count = 0

  async function drain(owner: unknown, queue: T[]): Promise<void> {
    while (queue.length > 0) {
      const taken = queue.splice(0, sizeMax)
      await serve(taken)
      count -= taken.length
    }
    queues.delete(owner)
    onEmpty()
  }

  return {
    count: () => count,
    add(items: readonly T[]): void {
      count += items.length
      for (const item of items) {
        const known = queues.get(item.owner)
        if (known) known.push(item)
        else queues.set(item.owner, [item])
        // Once all items of the call are in: they go together.
        if (!known) setImmediate(() => void drain(item.owner, queues.get(item.owner) ?? []))
      }
    },
  }
}

/**
 * Who goes with the next statement: the oldest, but of one owner only its share while others wait; places
 * that are left over then go to whoever is next. In order of arrival.
 */
function chooseFairly<T extends { owner: unknown }>(
  queue: T[],
  { sizeMax, shareMax }: BatchBounds,
): [chosen: T[], left: T[]] {
  if (queue.length <= sizeMax) return [queue, []]
  const taken = new Map<unknown, number>()
  const chosen = new Set<T>()
  for (const waiting of queue) {
    if (chosen.size === sizeMax) break
    const share = taken.get(waiting.owner) ?? 0
    if (waiting.owner !== undefined && share >= shareMax) continue
    taken.set(waiting.owner, share + 1)
    chosen.add(waiting)
  }
  for (const waiting of queue) {
    if (chosen.size === sizeMax) break
    chosen.add(waiting)
  }
  return [queue.filter((waiting) => chosen.has(waiting)), queue.filter((waiting) => !chosen.has(waiting))]
}

const conflictRetriesMax = 3

/** @returns an answer for each item; or the owners for whom it would have to wait: then nothing was done */
async function answer<Item, Result>(
  call: Call<Item, Result>,
  items: readonly Item[],
  waits: boolean,
  retries: number = conflictRetriesMax,
): Promise<(Result | Error)[] | Set<unknown>> {
  try {
    const answers = [...(await call(items, waits))]
    invariant(answers.length === items.length, 'a shared statement answers each of its items')
    return answers
  } catch (error) {
    if (!waits && isAccessChanging(error)) return new Set((error.detail ?? '').split(',').map(Number))
    if (retries > 0 && isConflict(error)) return answer(call, items, waits, retries - 1)
    if (items.length === 1 || !isDataError(error)) return items.map(() => asError(error))
    const answers: (Result | Error)[] = []
    // Those before it are committed: one that has to wait does so here.
    for (const item of items) answers.push(...((await answer(call, [item], true)) as (Result | Error)[]))
    return answers
  }
}

/** Raised by `share_access`: `detail` names the merchants whose access another session is changing. */
function isAccessChanging(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.code === 'MP001'
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

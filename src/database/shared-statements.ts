import { DatabaseError, type Pool } from 'pg'
import { DomainError } from '../shared/errors.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import { isConflict } from './transact.ts'

/**
 * One call for many items; it returns a result for each, in the order of the items.
 * @param waits whether the call waits for owners whose access another session is changing. If not, it fails
 * at once, with nothing done, and its error names these owners (`share_access`)
 */
export type Many<Item, Result> = (
  pool: Pool,
  items: readonly Item[],
  waits: boolean,
) => Promise<readonly Result[]>

/** A statement that concurrent callers share. The module that needs it declares it. */
export interface SharedStatement<Item, Result> {
  readonly many: Many<Item, Result>
  /** Returns the owner of an item; present where the items of one owner must not delay those of others. */
  readonly ownerOf: ((item: Item) => unknown) | undefined
  /** How long a statement waits for more items before it runs; above 0 only if no caller waits for it. */
  readonly pauseMs: number
}

/** The shared statements of a running service. */
export interface SharedStatements {
  /**
   * Adds an item to the next run of a shared statement. While no run is under way, the statement runs at once
   * (after `pauseMs`, if any); otherwise it runs when enough items wait, or when no run is under way. Each
   * caller gets its answer after the commit (see docs/design/architecture.md#statements-that-are-shared). If
   * the data of one item breaks the statement, only that item fails: the items run again one by one. A
   * statement that PostgreSQL rolled back because of a conflict runs again, at most three times. Items of an
   * owner whose access is being changed wait in a separate statement, one per owner at a time.
   * @throws DomainError OVERLOADED where too many items wait already
   */
  run<Item, Result>(statement: SharedStatement<Item, Result>, item: Item): Promise<Result>
  /** Resolves once nothing waits and nothing runs. */
  idle(): Promise<void>
}

export interface StatementBounds {
  /** Items in one statement, at most. */
  sizeMax: number
  /** Items of one owner in one statement while others wait, at most. */
  shareMax: number
  /** Statements that run at once, at most. */
  concurrencyMax: number
  /** Items that wait or run, at most. */
  queueMax: number
  /** The longest `pauseMs` of a statement; 0 in tests that move the clock by hand. */
  pauseMaxMs: number
}

export const usualBounds: StatementBounds = {
  sizeMax: limits.statementItemsMax,
  shareMax: 16,
  concurrencyMax: 2,
  queueMax: 2_000,
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

export function openSharedStatements(pool: Pool, bounds = usualBounds): SharedStatements {
  const runners = new Map<object, Runner<never, unknown>>()
  return {
    run<Item, Result>(statement: SharedStatement<Item, Result>, item: Item) {
      let runner = runners.get(statement) as Runner<Item, Result> | undefined
      if (!runner) {
        runner = createRunner((items, waits) => statement.many(pool, items, waits), statement, bounds)
        runners.set(statement, runner)
      }
      return runner.run(item)
    },
    async idle() {
      await Promise.all([...runners.values()].map((runner) => runner.idle()))
    },
  }
}

interface Runner<Item, Result> {
  run(item: Item): Promise<Result>
  idle(): Promise<void>
}

type Call<Item, Result> = (items: readonly Item[], waits: boolean) => Promise<readonly Result[]>

interface Waiting<Item, Result> {
  item: Item
  owner: unknown
  answered: PromiseWithResolvers<Result>
}

function createRunner<Item, Result>(
  call: Call<Item, Result>,
  { ownerOf, ...statement }: Pick<SharedStatement<Item, Result>, 'ownerOf' | 'pauseMs'>,
  bounds: StatementBounds,
): Runner<Item, Result> {
  const idlers: (() => void)[] = []
  const pauseMs = Math.min(statement.pauseMs, bounds.pauseMaxMs)
  let queue: Waiting<Item, Result>[] = []
  let underWay = 0
  let running = 0
  /** The number of statements that were started and have not taken their items yet. */
  let leaving = 0

  /**
   * Whether a further statement is worth its commit: nothing runs, or at least as many items wait as run, or
   * enough for a full statement. Fewer items wait for the end of the running statements: the callers of those
   * may then add items, which share the next statement.
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

  /** Whether to wait for more items: the statement has a pause, and its next run is not full. */
  function isEarly(): boolean {
    return pauseMs > 0 && queue.length < bounds.sizeMax
  }

  /** Runs statements, one after another, while enough items wait. */
  async function drive(): Promise<void> {
    for (let isFirst = true; isWorthIt(queue.length) && (isFirst || !isEarly()); isFirst = false) {
      const [chosen, left] = chooseFairly(queue, bounds)
      queue = left
      underWay += chosen.length
      startStatement()
      await run(chosen)
      underWay -= chosen.length
      // Callers that were just answered may add more items in this turn.
      await new Promise((turn) => setImmediate(turn))
    }
    running -= 1
    startStatement()
    resolveIdlers()
  }

  /**
   * Runs a statement for the chosen items. Items of owners whose access is being changed go `aside`.
   */
  async function run(chosen: readonly Waiting<Item, Result>[]): Promise<void> {
    for (let left = chosen; left.length > 0; ) {
      const locked = await serve(left, false)
      if (!locked) return
      aside.add(left.filter(({ owner }) => locked.has(owner)))
      left = left.filter(({ owner }) => !locked.has(owner))
    }
  }

  /**
   * Runs one statement for the chosen items, and answers the callers of these items.
   * @param waits false: the statement does nothing if it would have to wait for a lock
   * @returns null; or, if nothing was done, the owners whose locks another session holds
   */
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

/**
 * Opens separate queues for items of owners whose access is being changed: one queue per owner, so that an
 * owner uses at most one session of the pool.
 */
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
        // All items of the call are added first, so that they share a statement.
        if (!known) setImmediate(() => void drain(item.owner, queues.get(item.owner) ?? []))
      }
    },
  }
}

/**
 * Chooses the items of the next statement: the oldest, but at most `shareMax` of one owner. Room that is left
 * goes to the next items in order of arrival.
 */
function chooseFairly<T extends { owner: unknown }>(
  queue: T[],
  { sizeMax, shareMax }: StatementBounds,
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

/**
 * Runs a call for some items.
 * @returns an answer for each item; or the owners for which the call would have to wait: then nothing was
 * done
 */
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
    // The calls wait (`true`): the earlier items are committed, so "nothing was done" would be wrong.
    for (const item of items) answers.push(...((await answer(call, [item], true)) as (Result | Error)[]))
    return answers
  }
}

/**
 * True for the error of `share_access`; its `detail` lists the merchants whose access another session is
 * changing.
 */
function isAccessChanging(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.code === 'MP001'
}

/**
 * True for SQLSTATE classes 22 and 23: the data of one item is wrong, and the statement was rolled back.
 * After other errors (above all a lost connection) the commit may have happened, so the call is not repeated.
 */
function isDataError(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && /^2[23]/.test(String(error.code))
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

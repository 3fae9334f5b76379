import { limits } from '../shared/limits.ts'
import type { Provider } from '../shared/providers.ts'
import type { Leases } from './leases.ts'

/** The work that is drained lane by lane; each kind has lanes of its own. */
export interface Drains {
  /** Payouts, a lane for each operator. Every process may drain one: each payout is taken once. */
  payouts: Drain<Provider>
  /** Recipients of batches, in one lane that one process at a time drains. */
  batches: Drain<typeof bulkQueue>
  /** Webhooks, a lane for each endpoint, by its id; one process at a time drains it. */
  webhooks: Drain<number>
}

/** The lane of batches among the lanes that are held; the ids of webhook endpoints begin at 1. */
export const bulkQueue = 0

/** The lanes of one kind of work that this process drains. */
export interface Drain<Key> {
  /**
   * Drains a lane until nothing is due and nothing under way. Where this process drains the lane already,
   * that run looks once more; where another process holds it, nothing happens. No look begins once the
   * service ends. What a process that dies has taken is found again by its rows.
   * @param open begins a run; called again where the lane is held anew
   */
  run(key: Key, open: (run: Run) => Look): Promise<void>
  /** How many lanes run here. */
  readonly size: number
  /** How many of them have a receiver that failed last time. */
  readonly failing: number
}

/** Takes what is due and begins it. @returns true where the next look follows at once */
export type Look = () => Promise<boolean>

/** One lane while this process holds it. */
export interface Run {
  /** The service ends, or another process may be at the lane. */
  readonly isOver: boolean
  /** Aborts a moment after the service began to end: what is under way is given up. */
  readonly stop: AbortSignal
  /** How much of what this run began has not ended. */
  readonly underWay: number
  /** The receiver of the lane failed last time. */
  isFailing: boolean
  /**
   * Counts `work`, which never throws, as under way. The run looks again when the last of it has ended.
   * @param onEnd called at the end of any other
   */
  begin(work: Promise<unknown>, onEnd?: () => void): void
  /** Looks again, at once or after a pause; the first look ends all pauses. */
  notify(afterMs?: number): void
}

/** Holds a lane against other processes during `work`. */
type TakeLease<Key> = (key: Key, work: (lost: AbortSignal) => Promise<void>) => Promise<unknown>

/** @param ending aborted when the service begins to end; every run ends with it */
export function openDrains(ending: AbortSignal, leases: Leases): Drains {
  const stop = aWhileAfter(ending)
  const takeLease: TakeLease<number> = (key, work) => leases.during(key, work)
  return {
    payouts: openDrain(ending, stop, (_, work) => work(ending)),
    batches: openDrain(ending, stop, takeLease),
    webhooks: openDrain(ending, stop, takeLease),
  }
}

function aWhileAfter(ending: AbortSignal): AbortSignal {
  const stop = new AbortController()
  const end = () => void setTimeout(() => stop.abort(), limits.drainOperatorsMs).unref()
  ending.addEventListener('abort', end, { once: true })
  return stop.signal
}

function openDrain<Key>(ending: AbortSignal, stop: AbortSignal, takeLease: TakeLease<Key>): Drain<Key> {
  const runs = new Map<Key, OpenRun>()
  return {
    async run(key, open) {
      const running = runs.get(key)
      if (running) return running.notify()
      const opened = openRun(ending, stop)
      runs.set(key, opened)
      try {
        do {
          opened.again = false
          await takeLease(key, (lost) => opened.drain(open, lost))
        } while (opened.again && !ending.aborted)
      } finally {
        runs.delete(key)
      }
    },
    get size() {
      return runs.size
    },
    get failing() {
      return [...runs.values()].filter(({ isFailing }) => isFailing).length
    },
  }
}

type OpenRun = ReturnType<typeof openRun>

function openRun(ending: AbortSignal, stop: AbortSignal) {
  let lost = ending
  let resume = () => {}
  let pause: NodeJS.Timeout | undefined
  const opened = {
    /** Something was added since the last look. */
    again: false,
    isFailing: false,
    underWay: 0,
    stop,
    get isOver() {
      return ending.aborted || lost.aborted
    },
    begin(work: Promise<unknown>, onEnd?: () => void) {
      opened.underWay += 1
      void work.finally(() => {
        opened.underWay -= 1
        if (opened.underWay === 0) opened.notify()
        else onEnd?.()
      })
    },
    notify(afterMs = 0) {
      if (afterMs > 0) {
        pause ??= setTimeout(() => opened.notify(), afterMs)
        return
      }
      clearTimeout(pause)
      pause = undefined
      opened.again = true
      resume()
    },
    async drain(open: (run: Run) => Look, lostLease: AbortSignal) {
      lost = lostLease
      const onOver = () => resume()
      for (const signal of [ending, lost]) signal.addEventListener('abort', onOver, { once: true })
      const look = open(opened)
      try {
        do {
          opened.again = false
          // A wake during the look counts too.
          if (!opened.isOver && (await look())) opened.again = true
          const waits = !opened.again && opened.underWay > 0 && !opened.isOver
          if (waits) await new Promise<void>((resolve) => (resume = resolve))
        } while (opened.again && !opened.isOver)
      } finally {
        clearTimeout(pause)
        pause = undefined
        for (const signal of [ending, lostLease]) signal.removeEventListener('abort', onOver)
      }
    },
  }
  return opened
}

import { limits } from '../shared/limits.ts'
import type { Provider } from '../shared/providers.ts'
import type { Leases } from './leases.ts'

/** The queues that this process drains, by kind of work. */
export interface Drains {
  /** Payouts: one queue for each operator. Every process may drain one: each payout is taken once. */
  payouts: Drain<Provider>
  /** Recipients of batches: one queue, which one process at a time drains. */
  batches: Drain<typeof bulkQueue>
  /** Webhooks: one queue for each endpoint, by the endpoint's id; one process at a time drains it. */
  webhooks: Drain<number>
}

/** The lease key of the batch queue; the ids of webhook endpoints begin at 1. */
export const bulkQueue = 0

/** The queues of one kind of work that this process drains. */
export interface Drain<Key> {
  /**
   * Drains a queue until nothing is due and nothing is under way. Where this process drains the queue
   * already, that run looks once more; where another process has the lease, nothing happens. No look begins
   * after the service begins to end. Work that a dead process had taken is stored in rows, where a later look
   * finds it.
   * @param open begins a run and returns its look; called each time the lease is taken
   */
  run(key: Key, open: (run: Run) => Look): Promise<void>
  /** The number of queues that run in this process. */
  readonly size: number
  /** The number of them with a receiver that failed last time. */
  readonly failing: number
}

/** Takes due work and begins it. @returns true if the run must look again at once */
export type Look = () => Promise<boolean>

/** One queue while this process has its lease. */
export interface Run {
  /** True if the service ends, or this process lost the lease. */
  readonly isOver: boolean
  /** Aborts `limits.drainOperatorsMs` after the service began to end: work under way must stop then. */
  readonly stop: AbortSignal
  /** The number of works that this run began and that have not ended. */
  readonly underWay: number
  /** Whether the receiver of the queue failed last time. */
  isFailing: boolean
  /**
   * Counts `work`, which must not reject, as under way until it ends. The run looks again when no work is
   * under way any more.
   * @param onEnd called instead where other work is still under way
   */
  begin(work: Promise<unknown>, onEnd?: () => void): void
  /**
   * Makes the run look again, at once or after a pause. A call with a pause does nothing while an earlier
   * pause lasts; a call without one ends that pause. The end of the run ends the pause too.
   */
  notify(afterMs?: number): void
}

/** Runs `work` while this process has the lease of a queue, if the queue has one. */
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
    /** True if the run must look again. */
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
          // A `notify` during the look counts too.
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

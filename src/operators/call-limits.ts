import type { CallContext, NotSent } from './operator.ts'

// A call passes three limits before it is sent: its deadline, the number of calls at once (bulkhead), and the
// number of calls per second (rate).

/**
 * The least time that a call must have left when it is sent (rule 7 of `OperatorDriver`). With less, its
 * outcome would probably stay unknown.
 */
const leastBudgetMs = 500

/**
 * Returns the milliseconds that a call may still wait before it is too late to send it; negative if it is too
 * late.
 */
export function spareMs(ctx: CallContext): number {
  return ctx.deadline.getTime() - Date.now() - leastBudgetMs
}

/**
 * Returns a deadline by the machine's own clock, because a moved clock of the sandbox must change no
 * deadline.
 */
export function deadlineIn(ms: number): Date {
  return new Date(Date.now() + ms)
}

/** Calls that wait for their turn: first come, first served, and none longer than its deadline allows. */
export interface DeadlineQueue<Turn> {
  readonly size: number
  /** @returns the turn when it has come; `not_sent` if the wait ended without it */
  wait(ctx: CallContext): Promise<Turn | NotSent>
  /**
   * Gives the turn to the first waiting call.
   * @returns false if no call waits
   */
  admit(turn: Turn): boolean
  sendAway(answer: NotSent): void
}

export function createDeadlineQueue<Turn>(): DeadlineQueue<Turn> {
  const waiting = new Set<(answer: Turn | NotSent) => void>()
  return {
    get size() {
      return waiting.size
    },
    wait: (ctx) =>
      new Promise((resolve) => {
        const late = () => settle({ kind: 'not_sent', cause: 'deadline_before_send' })
        const timer = setTimeout(late, Math.max(0, spareMs(ctx))).unref()
        const settle = (answer: Turn | NotSent) => {
          clearTimeout(timer)
          ctx.signal?.removeEventListener('abort', late)
          waiting.delete(settle)
          resolve(answer)
        }
        ctx.signal?.addEventListener('abort', late, { once: true })
        waiting.add(settle)
        if (ctx.signal?.aborted) late()
      }),
    admit(turn) {
      const [next] = waiting
      next?.(turn)
      return next !== undefined
    },
    sendAway(answer) {
      for (const settle of waiting) settle(answer)
    },
  }
}

/** The limit of the calls that run at once, and of the calls that wait for their turn. */
export interface Bulkhead {
  readonly hasRoom: boolean
  /**
   * Takes a slot, at once or when one is free.
   * @returns null if the caller has a slot and must call `leave`; otherwise why it has none
   */
  enter(ctx: CallContext): Promise<NotSent | null>
  leave(): void
  /** Ends the wait of all waiting calls with this answer. */
  sendAway(answer: NotSent): void
  /** Ends the wait of all waiting calls, and lets no further call in. */
  close(): void
}

export function createBulkhead(callsMax: number, waitingMax: number): Bulkhead {
  const queue = createDeadlineQueue<null>()
  const closed = { kind: 'not_sent', cause: 'circuit_open' } as const
  let running = 0
  let ended = false

  return {
    get hasRoom() {
      return !ended && (running < callsMax || queue.size < waitingMax)
    },
    async enter(ctx) {
      if (ended) return closed
      if (running < callsMax) {
        running += 1
        return null
      }
      return queue.size < waitingMax ? queue.wait(ctx) : { kind: 'not_sent', cause: 'bulkhead_full' }
    },
    leave() {
      // The slot passes to the first waiting call directly, so that a later call cannot take it.
      if (!queue.admit(null)) running -= 1
    },
    sendAway: (answer) => queue.sendAway(answer),
    close() {
      ended = true
      queue.sendAway(closed)
    },
  }
}

/** The limit of the calls to an operator per second. */
export interface Rate {
  /**
   * Waits for a turn. Interactive calls, for which a customer waits, go before all background calls. Within
   * each class, calls go in the order of their arrival.
   * @returns null when the turn has come; `rate_limited`, at once, if it cannot come in time;
   * `deadline_before_send` if it did not come in time
   */
  take(ctx: CallContext): Promise<NotSent | null>
}

/**
 * The size of a burst after a pause: as many calls may leave at once as the rate allows in this time.
 * Background calls may use half of a burst; the rest is kept for interactive calls.
 */
const burstMs = { interactive: 2_000, background: 1_000 } as const satisfies Record<
  CallContext['priority'],
  number
>

/**
 * Makes a rate limit: a token bucket, kept as the time at which it would be full again, and the queues of
 * waiting calls.
 */
export function createRate(perSecond: number): Rate {
  const stepMs = 1_000 / perSecond
  const queues = { interactive: createDeadlineQueue<null>(), background: createDeadlineQueue<null>() }
  let fullAt = 0
  let next: NodeJS.Timeout | undefined

  const pauseMs = (priority: CallContext['priority']) =>
    Math.max(0, fullAt + stepMs - burstMs[priority] - performance.now())
  const spend = () => void (fullAt = Math.max(fullAt, performance.now()) + stepMs)
  /** Returns the expected wait, provided that no call of a higher priority arrives. */
  function waitMs(priority: CallContext['priority']): number {
    const before = queues.interactive.size + (priority === 'background' ? queues.background.size : 0)
    return pauseMs(priority) + before * stepMs
  }

  function serve(): void {
    for (const priority of ['interactive', 'background'] as const)
      while (pauseMs(priority) === 0 && queues[priority].admit(null)) spend()
    arm()
  }
  function arm(): void {
    clearTimeout(next)
    const priority = queues.interactive.size > 0 ? 'interactive' : 'background'
    if (queues[priority].size > 0) next = setTimeout(serve, pauseMs(priority)).unref()
  }

  return {
    async take(ctx) {
      const wait = waitMs(ctx.priority)
      if (wait > spareMs(ctx)) return { kind: 'not_sent', cause: 'rate_limited', retryAfterMs: wait }
      if (wait === 0) {
        spend()
        return null
      }
      const turn = queues[ctx.priority].wait(ctx)
      arm()
      return turn
    },
  }
}

interface Timer {
  readonly at: number
  readonly order: number
  readonly key: string
  readonly run: () => void
}

const longestTimeoutMs = 2 ** 31 - 1

/**
 * The simulator's time: the machine's time plus an offset, with timers that follow it. A new timer replaces
 * an older one with the same key. No timer fires before `start`.
 */
export class SimulatorClock {
  readonly #onError: (error: unknown) => void
  readonly #live = new Map<string, Timer>()
  /** A binary heap, earliest first; replaced and cleared timers stay in it until they reach the top. */
  #heap: Timer[] = []
  #order = 0
  #offset = 0
  #wake: NodeJS.Timeout | undefined
  #started = false

  /** @param onError gets the error of a timer; the other timers still run */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  /** Returns the milliseconds since 1970 on this clock. */
  now(): number {
    return Date.now() + this.#offset
  }

  /** Returns how many milliseconds this clock is ahead of the machine's. */
  get offset(): number {
    return this.#offset
  }

  /** Starts the timers, with the given offset. */
  start(offset: number): void {
    this.#offset = offset
    this.#started = true
    this.#arm()
  }

  stop(): void {
    this.#started = false
    clearTimeout(this.#wake)
  }

  /**
   * Runs a function at a time of this clock, or at the next turn of the event loop if that time has passed.
   */
  set(key: string, at: number, run: () => void): void {
    const timer: Timer = { at, order: this.#order++, key, run }
    this.#live.set(key, timer)
    this.#push(timer)
    if (this.#heap[0] === timer) this.#arm()
  }

  clear(key: string): void {
    this.#live.delete(key)
  }

  clearAll(): void {
    this.#live.clear()
    this.#heap = []
    clearTimeout(this.#wake)
  }

  /** Moves time forward, and runs all timers that fall due, in order and each at its own time. */
  advance(ms: number): void {
    const offset = this.#offset + ms
    const target = this.now() + ms
    for (let timer = this.#takeDue(target); timer; timer = this.#takeDue(target)) {
      this.#offset += Math.max(0, timer.at - this.now())
      this.#run(timer)
    }
    this.#offset = offset
    this.#arm()
  }

  #fire(): void {
    for (let timer = this.#takeDue(this.now()); timer; timer = this.#takeDue(this.now())) this.#run(timer)
    this.#arm()
  }

  #run(timer: Timer): void {
    try {
      timer.run()
    } catch (error) {
      this.#onError(error)
    }
  }

  #arm(): void {
    clearTimeout(this.#wake)
    const next = this.#next()
    if (!this.#started || !next) return
    const waitMs = Math.min(Math.max(0, next.at - this.now()), longestTimeoutMs)
    this.#wake = setTimeout(() => this.#fire(), waitMs)
    this.#wake.unref()
  }

  #takeDue(until: number): Timer | undefined {
    const next = this.#next()
    if (!next || next.at > until) return undefined
    this.#pop()
    this.#live.delete(next.key)
    return next
  }

  #next(): Timer | undefined {
    let top = this.#heap[0]
    while (top && this.#live.get(top.key) !== top) {
      this.#pop()
      top = this.#heap[0]
    }
    return top
  }

  #push(timer: Timer): void {
    const heap = this.#heap
    let index = heap.length
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = heap[above]
      if (!parent || !earlier(timer, parent)) break
      heap[index] = parent
      index = above
    }
    heap[index] = timer
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (!last || heap.length === 0) return
    let index = 0
    for (;;) {
      const left = heap[2 * index + 1]
      const right = heap[2 * index + 2]
      const lower = left && right && earlier(right, left) ? right : left
      if (!lower || !earlier(lower, last)) break
      heap[index] = lower
      index = lower === right ? 2 * index + 2 : 2 * index + 1
    }
    heap[index] = last
  }
}

function earlier(one: Timer, other: Timer): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}

/**
 * The clock of schedules, expiry and timestamps. In a sandbox it can be moved forward. The times of tokens
 * follow the machine's clock instead.
 */
export interface Clock {
  /** Returns the present time of the service. */
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

/**
 * A clock with the machine's time and an offset. The offset only grows, so that a move never sets the time
 * back.
 */
export interface MovedClock extends Clock {
  /** Sets the clock ahead of the machine's by this offset, unless it is further ahead already. */
  moveTo(offsetMs: number): void
}

/** Makes a clock that shows the machine's time until it is moved. */
export function movedClock(): MovedClock {
  let aheadMs = 0
  return {
    now: () => new Date(Date.now() + aheadMs),
    moveTo(offsetMs) {
      aheadMs = Math.max(aheadMs, offsetMs)
    },
  }
}

/** The time that schedules, expiry and timestamps go by. The sandbox can move it; tokens never follow it. */
export interface Clock {
  /** The service's time now. */
  now(): Date
}

/** The machine's own time. */
export const systemClock: Clock = { now: () => new Date() }

/** The machine's time and an offset, which only grows: time never goes back. */
export interface MovedClock extends Clock {
  /** Puts the clock this far ahead of the machine's, unless it is further ahead already. */
  moveTo(offsetMs: number): void
}

/** Makes a clock that goes with the machine's until it is moved. */
export function movedClock(): MovedClock {
  let aheadMs = 0
  return {
    now: () => new Date(Date.now() + aheadMs),
    moveTo(offsetMs) {
      aheadMs = Math.max(aheadMs, offsetMs)
    },
  }
}

/** The time that schedules, expiry and timestamps go by. The sandbox can move it; tokens never follow it. */
export interface Clock {
  /** The service's time now. */
  now(): Date
}

/** The machine's own time. */
export const systemClock: Clock = { now: () => new Date() }

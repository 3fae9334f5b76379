import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import { fullSlot, takeSlots } from './slot.ts'

/** How often the event loop is checked for a delay, and the delay that is too long. */
const loopSampleMs = 100
const loopDelayMaxMs = 100

/** The delay of the database that is too long. Choice: a fifth of the second that a client waits. */
const databaseDelayMaxMs = 200

/**
 * The number of slots never falls below this, unless `inFlightMax` is less. Choice: dashboards may use a
 * fifth of these slots, which is 32 waiting clients.
 */
const slotsMin = 160

/** The priority of a request while there are not enough slots for all. */
export type Priority = 'money' | 'status' | 'read' | 'dashboard'

/** A request is admitted while less than this share of the slots is taken, by requests of any priority. */
const shares: Readonly<Record<Priority, number>> = { money: 1, status: 0.6, read: 0.4, dashboard: 0.2 }

/**
 * Admits as many requests at once as can be answered in time and refuses the others at once, the least urgent
 * first: four tenths of the slots are for payments alone. No request waits in a queue here.
 * @see docs/design/architecture.md#overload-and-slow-clients
 */
export interface Admission {
  /** Checks that a slot is free. @throws DomainError OVERLOADED if none is: nothing was begun */
  check(priority: Priority): void
  /** Runs work in a slot of its own. @throws DomainError OVERLOADED, and every error of the work */
  run<T>(priority: Priority, work: () => Promise<T>): Promise<T>
  close(): void
}

/**
 * Opens the admission of requests.
 * @param inFlightMax the most slots; their number falls while the event loop or the database is late, and
 *   rises again when neither is
 * @param probe runs an empty statement through the pool that requests use, so that the probe waits as long as
 *   requests do. (The duration of a request itself tells nothing: some requests wait for operators.)
 */
export function openAdmission(inFlightMax: number, probe: () => Promise<unknown>): Admission {
  const fewest = Math.min(inFlightMax, Math.max(slotsMin, inFlightMax / 32))
  let slots = inFlightMax
  const taken = new Map<string, number>()
  const requests = () => taken.get(inFlight) ?? 0
  const slotFor = (priority: Priority) => [{ key: inFlight, max: slots * shares[priority], whose: 'service' }]
  let probedAt: number | null = null
  let due = performance.now() + loopSampleMs

  const timer = setInterval(() => {
    const now = performance.now()
    const isLate = now - due > loopDelayMaxMs || (probedAt !== null && now - probedAt > databaseDelayMaxMs)
    slots = nextSlots({ slots, taken: requests(), isLate, fewest, most: inFlightMax })
    due = now + loopSampleMs
    if (probedAt === null && requests() > fewest / 4) void ask(now)
  }, loopSampleMs).unref()

  async function ask(now: number): Promise<void> {
    probedAt = now
    // A probe that fails counts by its duration alone: concurrent requests get the same error and report it.
    await probe().catch(() => {})
    probedAt = null
  }

  return {
    check(priority) {
      if (fullSlot(taken, slotFor(priority))) throw overloaded()
    },
    async run(priority, work) {
      const leave = takeSlots(taken, slotFor(priority))
      if (typeof leave !== 'function') throw overloaded()
      try {
        return await work()
      } finally {
        leave()
      }
    },
    close: () => clearInterval(timer),
  }
}

/** The single name under which all requests take their slots. */
const inFlight = 'in flight'

function overloaded(): DomainError {
  return new DomainError('OVERLOADED', undefined, { retryAfterS: limits.overloadRetryS })
}

/**
 * Computes the next number of slots, from `fewest` to `most`: while the service is late, a fifth fewer than
 * are taken; otherwise a twentieth more than before.
 */
export function nextSlots(now: {
  slots: number
  taken: number
  isLate: boolean
  fewest: number
  most: number
}): number {
  const { slots, taken, isLate, fewest, most } = now
  return isLate ? Math.max(fewest, Math.min(slots, taken) * 0.8) : Math.min(most, slots * 1.05)
}

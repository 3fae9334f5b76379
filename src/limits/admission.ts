import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import { fullSlot, takeSlots } from './slot.ts'

/** How often it is looked whether the event loop is late, and what is too late. */
const loopSampleMs = 100
const loopDelayMaxMs = 100

/** Choice: a fifth of the second that a client waits. */
const databaseDelayMaxMs = 200

/** Places that always stay. Choice: a fifth of them, for dashboards, is 32 clients that wait. */
const slotsMin = 160

/** How much a request matters while there is no room for all. */
export type Priority = 'money' | 'status' | 'read' | 'dashboard'

/** The part of the room that requests of a kind may fill, those of the others included. */
const shares: Readonly<Record<Priority, number>> = { money: 1, status: 0.6, read: 0.4, dashboard: 0.2 }

/**
 * Lets in as many requests at once as can be answered in time and turns the others away at once, the least
 * urgent first: four tenths of the room are for money alone. Nobody queues here.
 * @see docs/design/architecture.md#overload-and-slow-clients
 */
export interface Admission {
  /** @throws DomainError OVERLOADED where there is no room: nothing was begun */
  check(priority: Priority): void
  /** Runs work in a place of its own. @throws DomainError OVERLOADED, and whatever the work throws */
  run<T>(priority: Priority, work: () => Promise<T>): Promise<T>
  close(): void
}

/**
 * @param inFlightMax places; they become fewer while the event loop is late or the database answers late, and
 *   come back when neither is so
 * @param probe asks the database for nothing, as all others ask it: what it waits, they wait. (How long they
 *   take themselves says nothing: some wait for operators.)
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
    // One that fails was as late as it was, and whoever asked beside it hears why.
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

/** The one name that all requests take their slots under. */
const inFlight = 'in flight'

function overloaded(): DomainError {
  return new DomainError('OVERLOADED', undefined, { retryAfterS: limits.overloadRetryS })
}

/** A fifth fewer than are taken while it is late; a twentieth more while it is not. */
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

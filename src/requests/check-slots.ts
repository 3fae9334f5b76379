import type { NotifiedJob } from '../jobs/catalogue.ts'
import type { Provider } from '../shared/providers.ts'

/** The most requests that one process checks with one operator at the same time. */
export const dueRequestsMax = 32

/**
 * The questions per second of one process to one operator about requests that are older than a minute and
 * still pending, mostly because their customer did not answer. Choice: a question costs about 2 ms of
 * processor time in the service and in PostgreSQL, so that any number of such requests costs less than 5 % of
 * a core.
 */
export const waitingQuestionsPerSecond = 20

/** How far ahead this process looks for a request at the time when it is due. Later ones wait for the job. */
const lookAheadMs = 5_000

/** Choice: requests that become due within this time are looked for together, by one statement. */
const lookStepMs = 50

/** The checks of this process with one operator. */
export interface CheckSlots {
  /** The slots in use or reserved, at most `dueRequestsMax`. */
  taken: number
  /**
   * True if more requests may be due than there were free slots. Then a slot that becomes free is filled at
   * once.
   */
  isMoreDue: boolean
  /** The milliseconds by which the questions about pending requests were ahead of their rate at `aheadAt`. */
  aheadMs: number
  aheadAt: number
  /** The times at which this process looks for due requests, in steps of `lookStepMs`. */
  looks: Set<number>
}

export type ChecksByOperator = Map<Provider, CheckSlots>

/** Returns the checks with one operator. */
export function slotsOf({ checkSlots }: { checkSlots: ChecksByOperator }, provider: Provider): CheckSlots {
  let slots = checkSlots.get(provider)
  if (!slots) {
    slots = { taken: 0, isMoreDue: false, aheadMs: 0, aheadAt: 0, looks: new Set() }
    checkSlots.set(provider, slots)
  }
  return slots
}

/** Returns the name of the job that asks one operator about its due requests. */
export function resolveJob<P extends Provider>(provider: P): `requests.resolve.${P}` {
  return `requests.resolve.${provider}`
}

/**
 * Looks for due requests of an operator when a request becomes due that this process recorded. The job
 * looks by itself again and again, for requests that other processes left.
 */
export function lookWhenDue(
  services: { checkSlots: ChecksByOperator; notifyJob(name: NotifiedJob): void },
  provider: Provider,
  dueMs: number,
): void {
  if (dueMs > lookAheadMs) return
  const { looks } = slotsOf(services, provider)
  const now = performance.now()
  const look = Math.ceil((now + dueMs) / lookStepMs)
  if (looks.has(look)) return
  looks.add(look)
  const run = () => {
    looks.delete(look)
    services.notifyJob(resolveJob(provider))
  }
  setTimeout(run, Math.ceil(look * lookStepMs - now)).unref()
}

/**
 * Counts a question about a pending request.
 * @returns how much later than usual the next question about it comes, so that all such questions together
 * keep their rate
 * @param now a time in milliseconds that never goes back
 */
export function countWaitingQuestion(slots: CheckSlots, now: number): number {
  const stepMs = 1_000 / waitingQuestionsPerSecond
  slots.aheadMs = Math.max(0, slots.aheadMs - (now - slots.aheadAt))
  slots.aheadAt = now
  const laterMs = slots.aheadMs
  slots.aheadMs += stepMs
  return Math.round(laterMs)
}

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
}

/** The checks of this process, by operator. */
export type ChecksByOperator = Map<Provider, CheckSlots>

/** Returns the checks with one operator. */
export function slotsOf({ checkSlots }: { checkSlots: ChecksByOperator }, provider: Provider): CheckSlots {
  let slots = checkSlots.get(provider)
  if (!slots) checkSlots.set(provider, (slots = { taken: 0, isMoreDue: false, aheadMs: 0, aheadAt: 0 }))
  return slots
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

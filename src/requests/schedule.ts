const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** The bounds of the schedule. Tests shorten them. */
export const scheduleBounds = {
  /**
   * The time of the first question after a send, to an operator that sends no callback. Choice: a payment
   * that its customer pays at once is settled within a second. The second question comes three seconds later.
   */
  firstPollMs: 400,
  /**
   * The times after a payment at which an operator that does not report reversals is asked about a reversal.
   */
  reversalChecksMs: [1 * minute, 10 * minute, 1 * hour, 24 * hour],
  /** How long after its end a request is asked about. Choice: a week, because its money may still arrive. */
  lateChecksForMs: 7 * 24 * hour,
}

/** One age range of the polling schedule: up to age `untilMs`, the service asks every `everyMs`. */
interface Stage {
  untilMs: number
  everyMs: number
}

/**
 * The polling schedules. An operator that sends callbacks is asked rarely; an operator that sends none is
 * asked often at first. (see docs/design/requests.md#when-the-operator-is-asked)
 */
const stages = {
  callback: [
    { untilMs: 1 * minute, everyMs: 60 * second },
    { untilMs: 5 * minute, everyMs: 30 * second },
    { untilMs: 30 * minute, everyMs: 2 * minute },
    { untilMs: 2 * hour, everyMs: 10 * minute },
    { untilMs: Number.POSITIVE_INFINITY, everyMs: 1 * hour },
  ],
  polling: [
    { untilMs: 30 * second, everyMs: 3 * second },
    { untilMs: 5 * minute, everyMs: 15 * second },
    { untilMs: 30 * minute, everyMs: 1 * minute },
    { untilMs: 2 * hour, everyMs: 5 * minute },
    { untilMs: Number.POSITIVE_INFINITY, everyMs: 30 * minute },
  ],
} as const satisfies Record<string, readonly Stage[]>

/** Pauses after an unknown outcome: short at first, then longer. */
const unknownPausesMs = [2 * second, 4 * second, 8 * second, 15 * second, 30 * second, 1 * minute] as const

/**
 * Returns the milliseconds until an open operation is asked about again, with 20 % jitter.
 * @param ageMs since the operation began
 * @param random from 0 to 1
 */
export function nextCheckMs(
  notify: 'callback' | 'polling',
  ageMs: number,
  random: number = Math.random(),
): number {
  const stage = stages[notify].find(({ untilMs }) => ageMs < untilMs)
  return jitter(stage?.everyMs ?? hour, random)
}

/**
 * Returns the milliseconds from the answer to a send until the first question, with 20 % jitter. A callback
 * comes sooner than a question, so an operator that sends callbacks is asked later.
 */
export function firstCheckMs(
  kind: 'collect' | 'disburse',
  notify: 'callback' | 'polling',
  random: number = Math.random(),
): number {
  if (notify === 'polling') return jitter(scheduleBounds.firstPollMs, random)
  return kind === 'collect' ? nextCheckMs(notify, 0, random) : nextDisburseCheckMs(notify, 0, 0, random)
}

/**
 * Returns the pause before the next question about an open disbursement. Its caller may wait for the answer,
 * so the service asks every three seconds for the first 30 seconds after a send, even if the operator sends
 * callbacks.
 */
export function nextDisburseCheckMs(
  notify: 'callback' | 'polling',
  ageMs: number,
  sinceSentMs: number,
  random: number = Math.random(),
): number {
  return nextCheckMs(
    ...(sinceSentMs < freshMs ? (['polling', 0] as const) : ([notify, ageMs] as const)),
    random,
  )
}

const freshMs = 30 * second

/** The hints of an operator about the questions that it accepts. */
export interface PollHints {
  /** The shortest pause before the next question. */
  pollAfterMs?: number | undefined
  /** The number of questions that the operator still accepts. */
  pollsLeft?: number | undefined
  /** When the prompt or page expires: after that the operator has the outcome. */
  expiresAt?: Date | undefined
}

/**
 * Returns the regular pause, adjusted to the operator's hints: not before the time that the operator names,
 * at the latest soon after its prompt expires, and with a single question left, only at the end of the
 * operation.
 * @param endMs until the end of the operation
 */
export function politeCheckMs(regularMs: number, asked: PollHints, now: Date, endMs: number): number {
  if (asked.pollsLeft !== undefined && asked.pollsLeft <= 1) return Math.max(endMs, 0)
  const promptMs = (asked.expiresAt?.getTime() ?? 0) - now.getTime()
  const pauseMs = promptMs > 0 ? Math.min(regularMs, promptMs + promptGraceMs) : regularMs
  return Math.min(Math.max(pauseMs, asked.pollAfterMs ?? 0), Math.max(endMs, 0))
}

/** Choice: an operator closes an expired prompt within a second. */
const promptGraceMs = second

/**
 * Returns the milliseconds until the next try for an operation whose outcome is unknown, or that was not
 * sent. @param checks number of tries before; the pause grows with it, up to a minute
 */
export function nextUnknownCheckMs(checks: number, random: number = Math.random()): number {
  return jitter(unknownPausesMs[Math.min(checks, unknownPausesMs.length - 1)] ?? minute, random)
}

/**
 * Returns the milliseconds until a disbursement that the operator rejected because our float was empty is
 * sent again, with 20 % jitter. The pause grows from half a minute to 15 minutes.
 */
export function nextFloatCheckMs(checks: number, random: number = Math.random()): number {
  return jitter(Math.min(30 * second * 2 ** Math.min(checks, 30), 15 * minute), random)
}

/**
 * Returns the milliseconds until the operator is asked whether it took paid money back; null if no such
 * question is left, or if the operator reports reversals itself.
 * @param ageMs since the payment
 */
export function nextReversalCheckMs(reports: boolean, ageMs: number): number | null {
  const next = reports ? undefined : scheduleBounds.reversalChecksMs.find((atMs) => atMs > ageMs)
  return next === undefined ? null : next - ageMs
}

function jitter(ms: number, random: number): number {
  return Math.round(ms * (0.8 + 0.4 * random))
}

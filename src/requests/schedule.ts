import { limits } from '../shared/limits.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** How often an open collection is asked about, by its age: until `age`, every `pause`. */
interface Stage {
  untilMs: number
  everyMs: number
}

/**
 * An operator that calls back is asked rarely; one that does not, often at first. (design: operators, section
 * 2.5)
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

/** After an outcome that nobody knows: soon, then less and less often. */
const unknownPausesMs = [2 * second, 4 * second, 8 * second, 15 * second, 30 * second, 1 * minute] as const

/**
 * Milliseconds until an open operation is asked about again, with 20 % jitter.
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
 * The same of a disbursement, whose caller may wait for it: at first every three seconds, whoever calls back,
 * however old it was when it was sent.
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

/** What an operator says of the questions that it wants. */
export interface PollHints {
  /** No question before this. */
  pollAfterMs?: number | undefined
  /** So many questions more. */
  pollsLeft?: number | undefined
  /** When the prompt or page ends by itself: then there is an answer. */
  expiresAt?: Date | undefined
}

/**
 * The regular pause, as the operator wants it: not before the time it names, soon after its prompt ends, and
 * where one question is left, that one at the end of the operation's own time.
 * @param endMs until the end of the operation
 */
export function politeCheckMs(regularMs: number, asked: PollHints, now: Date, endMs: number): number {
  if (asked.pollsLeft !== undefined && asked.pollsLeft <= 1) return Math.max(endMs, 0)
  const promptMs = (asked.expiresAt?.getTime() ?? 0) - now.getTime()
  const pauseMs = promptMs > 0 ? Math.min(regularMs, promptMs + promptGraceMs) : regularMs
  return Math.min(Math.max(pauseMs, asked.pollAfterMs ?? 0), Math.max(endMs, 0))
}

/** Choice: an operator closes what ran out within a second. */
const promptGraceMs = second

/** Milliseconds until an operation in doubt, or an operator out of reach, is asked again. */
export function nextUnknownCheckMs(checks: number, random: number = Math.random()): number {
  return jitter(unknownPausesMs[Math.min(checks, unknownPausesMs.length - 1)] ?? minute, random)
}

/** Milliseconds until a payout is sent again that our empty float turned away, with 20 % jitter. */
export function nextFloatCheckMs(checks: number, random: number = Math.random()): number {
  return jitter(Math.min(30 * second * 2 ** Math.min(checks, 30), 15 * minute), random)
}

/**
 * Milliseconds until the operator is asked whether it took back what was paid; null: no more, or never where
 * the operator tells by itself.
 * @param ageMs since it was paid
 */
export function nextReversalCheckMs(reports: boolean, ageMs: number): number | null {
  const next = reports ? undefined : limits.reversalChecksMs.find((atMs) => atMs > ageMs)
  return next === undefined ? null : next - ageMs
}

function jitter(ms: number, random: number): number {
  return Math.round(ms * (0.8 + 0.4 * random))
}

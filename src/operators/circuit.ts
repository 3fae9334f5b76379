import { createDeadlineQueue, spareMs } from './call-limits.ts'
import type { CallContext, NotSent, NotSentCause, UnknownCause } from './operator.ts'

/** The circuit opens after this many failures in a row, or when half of the calls of the window failed. */
const failuresInRowMax = 5
const windowCallsMin = 10
const windowFailuresShare = 0.5
const windowS = 30
/** The pause before a probe doubles up to this. */
const openMsMax = 120_000

/** What an outcome says about the operator's health. */
type Verdict = 'well' | 'sick' | 'silent'

/**
 * Judges an outcome: no answer, or no way to one, is sick. A refusal is an answer. Being asked to slow down,
 * what we held back ourselves, and what our caller gave up say nothing.
 */
export function judge(outcome: { kind: string; cause?: NotSentCause | UnknownCause }): Verdict {
  if (outcome.kind !== 'unknown' && outcome.kind !== 'not_sent' && outcome.kind !== 'unreachable')
    return 'well'
  if (outcome.cause !== undefined && answeredCauses.has(outcome.cause)) return 'well'
  return outcome.cause !== undefined && unknownCauses.has(outcome.cause) ? 'silent' : 'sick'
}

const answeredCauses = new Set<NotSentCause | UnknownCause>([
  'resend_refused',
  'float_empty',
  'unreadable_amount',
])

const unknownCauses = new Set<NotSentCause | UnknownCause>([
  'rate_limited',
  'deadline_before_send',
  'bulkhead_full',
  'circuit_open',
  'deadline',
])

/** Keeps calls away from an operator that does not answer. */
export interface Circuit {
  /** Calls may be made. */
  readonly closed: boolean
  /** What a call is told that is held back. */
  refusal(): NotSent
  /**
   * Lets a call go: at once, or when an answer to another one has proved that the operator is there. At most
   * five calls leave for an operator without a good answer since; those already under way when it fell silent
   * went to one that was alive.
   */
  enter(ctx: CallContext): Promise<Pass | NotSent>
  close(): void
}

/** The right to make one call. */
export interface Pass {
  /** Learns from the outcome, null where there is none. */
  report(outcome: Parameters<typeof judge>[0] | null): void
}

/**
 * Makes a circuit that only a probe can close again: a money call is never the one that tries whether an
 * operator is back. After the probe calls go one at a time, and the first failure opens again, until one is
 * answered.
 * @param options.openMs pause before the first probe; it doubles at every opening until a real call succeeds
 * @param options.doubtedMs the same where the operator says that it is well while it answers no call at all:
 *   then its word at the next probe is worth as little, and the call after it is one more into the void
 * @param options.probe asks for the operator's health and says whether it is good
 * @param options.onChange called after every opening and closing
 */
export function createCircuit(options: {
  openMs: number
  doubtedMs?: number
  probe: () => Promise<boolean>
  onChange: () => void
}): Circuit {
  const { openMs, doubtedMs = openMs, probe, onChange } = options
  const rule = createTripRule()
  const queue = createDeadlineQueue<Pass>()
  /** Calls under way that left after the last good answer. */
  const unproven = new Set<Pass>()
  let openings = 0
  /** Openings since the last good answer. */
  let doublings = 0
  let probeAt = 0
  /** How long the last good answer took. */
  let answerMs = 0
  let timer: NodeJS.Timeout | undefined
  let state: 'closed' | 'open' | 'probing' = 'closed'
  let ended = false
  const isClosed = () => state === 'closed'
  const refusal = (): NotSent => ({
    kind: 'not_sent',
    cause: 'circuit_open',
    retryAfterMs: isClosed() ? 0 : Math.max(1, probeAt - Date.now()),
  })

  function open(): void {
    const pause = (firstMs: number) => Math.min(firstMs * 2 ** doublings, Math.max(firstMs, openMsMax))
    const [pauseMs, doubtedPauseMs] = [pause(openMs), pause(doubtedMs)]
    // After a probe that failed the operator has said already that it is not well.
    const isDoubted = isClosed() && rule.callsLeft <= 0 && doubtedMs > openMs
    state = 'open'
    openings += 1
    doublings += 1
    unproven.clear()
    armProbe(pauseMs)
    queue.sendAway(refusal())
    onChange()
    if (isDoubted) void doubt(openings, doubtedPauseMs)
  }

  /** The operator is asked at once how it is: one that says "well" now would say so at the probe as well. */
  async function doubt(opening: number, pauseMs: number): Promise<void> {
    const saysWell = await probe()
    if (saysWell && opening === openings && state === 'open') armProbe(pauseMs)
  }

  function armProbe(pauseMs: number): void {
    if (ended) return
    clearTimeout(timer)
    probeAt = Date.now() + pauseMs
    timer = setTimeout(() => void runProbe(), pauseMs).unref()
  }

  async function runProbe(): Promise<void> {
    state = 'probing'
    if (!(await probe())) return open()
    state = 'closed'
    rule.restart()
    admit()
    onChange()
  }

  function admit(): void {
    while (queue.size > 0 && isClosed() && unproven.size < rule.callsLeft) queue.admit(pass())
  }

  function pass(): Pass {
    const opening = openings
    const begunAt = Date.now()
    const made: Pass = {
      report(outcome) {
        const verdict = outcome === null ? 'silent' : judge(outcome)
        // What was begun before an opening tells nothing new: the probe decided, or will.
        if (verdict !== 'silent' && opening === openings && isClosed()) {
          if (verdict === 'well') {
            answerMs = Date.now() - begunAt
            doublings = 0
            unproven.clear()
          }
          if (verdict === 'well') rule.success()
          else if (rule.failure()) open()
        }
        unproven.delete(made)
        admit()
      },
    }
    unproven.add(made)
    return made
  }

  return {
    get closed() {
      return !ended && isClosed()
    },
    refusal,
    async enter(ctx) {
      if (ended || !isClosed()) return refusal()
      if (unproven.size < rule.callsLeft) return pass()
      const turn = await queue.wait(ctx)
      if (isRefused(turn) || spareMs(ctx) >= answerMs) return turn
      // With too little time for an answer it would seem lost, and the operator sick, by our own waiting.
      turn.report(null)
      return { kind: 'not_sent', cause: 'deadline_before_send' }
    },
    close() {
      ended = true
      clearTimeout(timer)
      queue.sendAway(refusal())
    },
  }
}

function isRefused(turn: Pass | NotSent): turn is NotSent {
  return 'kind' in turn
}

/** When a circuit opens. */
interface TripRule {
  /** How many more may fail before it opens for that alone. */
  readonly callsLeft: number
  success(): void
  /** @returns whether it opens now */
  failure(): boolean
  /** After a good probe: what was before is forgotten, and the first failure opens. */
  restart(): void
}

/** Five in a row, half of at least ten within thirty seconds, or the first one after a probe. */
export function createTripRule(): TripRule {
  let inRow = 0
  let onTrial = false
  let seconds: { second: number; calls: number; failures: number }[] = []
  const callsLeft = () => (onTrial ? 1 : failuresInRowMax) - inRow

  function count(failed: boolean): void {
    const second = Math.floor(Date.now() / 1_000)
    seconds = seconds.filter((bucket) => bucket.second > second - windowS)
    let bucket = seconds.at(-1)
    if (bucket?.second !== second) {
      bucket = { second, calls: 0, failures: 0 }
      seconds.push(bucket)
    }
    bucket.calls += 1
    bucket.failures += failed ? 1 : 0
    inRow = failed ? inRow + 1 : 0
  }

  return {
    get callsLeft() {
      return callsLeft()
    },
    success() {
      onTrial = false
      count(false)
    },
    failure() {
      count(true)
      const calls = seconds.reduce((sum, bucket) => sum + bucket.calls, 0)
      const failures = seconds.reduce((sum, bucket) => sum + bucket.failures, 0)
      return callsLeft() <= 0 || (calls >= windowCallsMin && failures >= windowFailuresShare * calls)
    },
    restart() {
      onTrial = true
      inRow = 0
      seconds = []
    },
  }
}

import { createDeadlineQueue, spareMs } from './call-limits.ts'
import type { CallContext, NotSent, NotSentCause, UnknownCause } from './operator.ts'

/**
 * The circuit opens after this many failures in a row, or when half of at least ten calls in 30 seconds
 * failed.
 */
const failuresInRowMax = 5
const windowCallsMin = 10
const windowFailuresShare = 0.5
const windowS = 30
/** The bound up to which the pause before a probe doubles. A first pause above this bound never doubles. */
const openMsMax = 120_000

/** The operator's health as the outcome of one call shows it. */
type Health = 'healthy' | 'unhealthy' | 'unknown'

/**
 * Returns the operator's health as an outcome shows it. No connection, no token, no answer and an unusable
 * answer are `unhealthy`. A refusal is a usable answer, so the operator is `healthy`. A request to slow down,
 * a call that we held back, and a call that its caller aborted are `unknown`.
 */
export function healthOf(outcome: { kind: string; cause?: NotSentCause | UnknownCause }): Health {
  if (outcome.kind !== 'unknown' && outcome.kind !== 'not_sent' && outcome.kind !== 'unreachable')
    return 'healthy'
  if (outcome.cause !== undefined && answeredCauses.has(outcome.cause)) return 'healthy'
  return outcome.cause !== undefined && unknownCauses.has(outcome.cause) ? 'unknown' : 'unhealthy'
}

const answeredCauses = new Set<NotSentCause | UnknownCause>([
  'resend_refused',
  'float_empty',
  'unreadable_amount',
  'other_payment',
])

const unknownCauses = new Set<NotSentCause | UnknownCause>([
  'rate_limited',
  'deadline_before_send',
  'bulkhead_full',
  'circuit_open',
  'deadline',
])

/** Holds calls back while an operator does not answer. */
export interface Circuit {
  /** True if calls may be made. */
  readonly closed: boolean
  /** Returns the answer for a call that is held back. */
  refusal(): NotSent
  /**
   * Admits a call at once, or after a wait. Among the calls that left after the operator's last good answer,
   * those that run or have failed are at most five, after a probe at most one. Further calls wait.
   */
  enter(ctx: CallContext): Promise<Pass | NotSent>
  close(): void
}

/** The right to make one call. */
export interface Pass {
  /** Counts the outcome; null if the call was not made, or threw. */
  report(outcome: Parameters<typeof healthOf>[0] | null): void
}

/**
 * Makes a circuit. Only a good probe closes an open circuit, so that no money call has to test whether an
 * operator is back. After the probe, calls leave one at a time until one gets a good answer; a failure before
 * that opens the circuit again.
 * @param options.openMs pause before the first probe; it doubles at every opening until a real call succeeds
 * @param options.doubtedMs this pause for an operator that reports good health although calls to it fail: its
 * report at an early probe would be as unreliable, and another money call would be lost
 * @param options.probe asks for the operator's health and returns whether it is good
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
  /** The running calls that left after the last good answer. */
  const unproven = new Set<Pass>()
  let openings = 0
  /** The number of openings since the last good answer. */
  let doublings = 0
  let probeAt = 0
  /** The duration of the call that got the last good answer. */
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
    // After a failed probe, the operator's health is known: do not ask again.
    const isDoubted = isClosed() && rule.callsLeft <= 0 && doubtedMs > openMs
    state = 'open'
    openings += 1
    doublings += 1
    unproven.clear()
    armProbe(pauseMs)
    queue.sendAway(refusal())
    onChange()
    if (isDoubted) void askHealth(openings, doubtedPauseMs)
  }

  /**
   * Asks the operator for its health at once. If it reports good health although calls fail, an early probe
   * would be as unreliable, so the probe comes later.
   */
  async function askHealth(opening: number, pauseMs: number): Promise<void> {
    const saysHealthy = await probe()
    if (saysHealthy && opening === openings && state === 'open') armProbe(pauseMs)
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
        const health = outcome === null ? 'unknown' : healthOf(outcome)
        // A call that began before an opening tells nothing new: the probe decides.
        if (health !== 'unknown' && opening === openings && isClosed()) {
          if (health === 'healthy') {
            answerMs = Date.now() - begunAt
            doublings = 0
            unproven.clear()
          }
          if (health === 'healthy') rule.success()
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
      // With too little time for an answer, the call would probably end as lost, and the operator would count
      // as unhealthy, only because the call waited here.
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

/** The rule for the opening of a circuit. */
interface TripRule {
  /** The number of further failures in a row that would open the circuit. */
  readonly callsLeft: number
  success(): void
  /** @returns whether the circuit opens now */
  failure(): boolean
  /** Forgets the past after a good probe. Until a call succeeds, one failure then opens the circuit. */
  restart(): void
}

/**
 * Makes the rule: open after five failures in a row, when half of at least ten calls in 30 seconds failed, or
 * at the first failure after a probe.
 */
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

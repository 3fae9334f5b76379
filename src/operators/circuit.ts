import { BrokenCircuitError, CircuitState, circuitBreaker, handleWhenResult, type IBreaker } from 'cockatiel'
import { spareMs } from './http-client.ts'
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
  return outcome.cause !== undefined && silentCauses.has(outcome.cause) ? 'silent' : 'sick'
}

const silentCauses = new Set<NotSentCause | UnknownCause>([
  'rate_limited',
  'deadline_before_send',
  'lane_full',
  'circuit_open',
  'deadline',
])

/** Keeps calls away from an operator that does not answer. */
export interface Circuit {
  /** Calls may be made. */
  readonly closed: boolean
  /** Until the next probe; 0 while closed. */
  retryAfterMs(): number
  /** Learns from the outcome of a call; done when the circuit is in its new state. */
  report(outcome: Parameters<typeof judge>[0]): Promise<void>
  close(): void
}

/**
 * Makes a circuit that only a probe can close again: a money call is never the one that tries whether an
 * operator is back.
 * @param options.openMs pause before the first probe; it doubles at every opening until a real call succeeds
 * @param options.probe asks for the operator's health and says whether it is good
 * @param options.onChange called after every opening and closing
 */
export function createCircuit(options: {
  openMs: number
  probe: () => Promise<boolean>
  onChange: () => void
}): Circuit {
  const { openMs, probe, onChange } = options
  let openings = 0
  let probeAt = 0
  let timer: NodeJS.Timeout | undefined
  let ended = false
  // The library may go half-open at any time: when it does is for the timer to say, as nothing but a probe
  // runs by then.
  const policy = circuitBreaker(
    handleWhenResult((healthy) => healthy === false),
    { halfOpenAfter: 0, breaker: createTripRule() },
  )
  const isClosed = () => policy.state === CircuitState.Closed

  policy.onBreak(() => {
    const pauseMs = Math.min(openMs * 2 ** openings, Math.max(openMs, openMsMax))
    openings += 1
    armProbe(pauseMs)
    onChange()
  })
  policy.onReset(onChange)

  function armProbe(pauseMs: number): void {
    if (ended) return
    probeAt = Date.now() + pauseMs
    timer = setTimeout(() => void runProbe(), pauseMs).unref()
  }

  async function runProbe(): Promise<void> {
    try {
      await policy.execute(probe)
    } catch (error) {
      // The machine's clock was set back, and the library takes the opening to be still ahead.
      if (!(error instanceof BrokenCircuitError)) throw error
      armProbe(openMs)
    }
  }

  return {
    get closed() {
      return !ended && isClosed()
    },
    retryAfterMs: () => (isClosed() ? 0 : Math.max(1, probeAt - Date.now())),
    async report(outcome) {
      const verdict = judge(outcome)
      // What was begun before an opening tells nothing new while the probe decides.
      if (verdict === 'silent' || !isClosed()) return
      if (verdict === 'well') openings = 0
      await policy.execute(() => verdict === 'well')
    },
    close() {
      ended = true
      clearTimeout(timer)
    },
  }
}

/** Five in a row, or half of at least ten within thirty seconds. */
export function createTripRule(): IBreaker {
  let inRow = 0
  let seconds: { second: number; calls: number; failures: number }[] = []

  function note(failed: boolean): void {
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
    get state() {
      return { inRow, seconds }
    },
    set state(value) {
      ;({ inRow, seconds } = structuredClone(value))
    },
    success(state) {
      if (state === CircuitState.HalfOpen) {
        inRow = 0
        seconds = []
      } else note(false)
    },
    failure() {
      note(true)
      const calls = seconds.reduce((sum, bucket) => sum + bucket.calls, 0)
      const failures = seconds.reduce((sum, bucket) => sum + bucket.failures, 0)
      return inRow >= failuresInRowMax || (calls >= windowCallsMin && failures >= windowFailuresShare * calls)
    },
  }
}

/**
 * A bounded number of calls at once, and a bounded number that wait for their turn, first come, first served.
 */
export interface Lane {
  readonly hasRoom: boolean
  /** Enters, at once or when a place is free; whoever enters must `leave`. */
  enter(ctx: CallContext): Promise<NotSent | null>
  leave(): void
  /** Sends all who wait away. */
  close(): void
}

export function createLane(callsMax: number, waitingMax: number): Lane {
  let running = 0
  let ended = false
  const waiting = new Set<(answer: NotSent | null) => void>()

  return {
    get hasRoom() {
      return !ended && (running < callsMax || waiting.size < waitingMax)
    },
    enter(ctx) {
      if (ended) return Promise.resolve({ kind: 'not_sent', cause: 'circuit_open' })
      if (running < callsMax) {
        running += 1
        return Promise.resolve(null)
      }
      if (waiting.size >= waitingMax) return Promise.resolve({ kind: 'not_sent', cause: 'lane_full' })
      return new Promise((resolve) => {
        const late = () => settle({ kind: 'not_sent', cause: 'deadline_before_send' })
        const timer = setTimeout(late, Math.max(0, spareMs(ctx))).unref()
        const settle = (answer: NotSent | null) => {
          clearTimeout(timer)
          ctx.signal?.removeEventListener('abort', late)
          waiting.delete(settle)
          resolve(answer)
        }
        ctx.signal?.addEventListener('abort', late, { once: true })
        waiting.add(settle)
        if (ctx.signal?.aborted) late()
      })
    },
    leave() {
      const [next] = waiting
      // The place passes on without becoming free, so that nobody who comes later takes it first.
      if (next) next(null)
      else running -= 1
    },
    close() {
      ended = true
      for (const settle of waiting) settle({ kind: 'not_sent', cause: 'circuit_open' })
    },
  }
}

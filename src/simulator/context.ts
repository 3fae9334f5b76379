import type { CallLog } from './calls.ts'
import type { SimulatorClock } from './clock.ts'
import type { SimulatorEngine } from './engine.ts'
import type { Notifier } from './notifier.ts'
import type { RequestLog } from './request-log.ts'
import type { Rules } from './rules.ts'
import type { Store } from './store.ts'

/** The parts of one running simulator, for its request handlers. */
export interface SimulatorContext {
  readonly store: Store
  readonly clock: SimulatorClock
  readonly engine: SimulatorEngine
  /** The faults in force. */
  readonly rules: Rules
  readonly notifier: Notifier
  readonly requests: RequestLog
  readonly calls: CallLog
  /** The public address, without a slash at its end; known once the simulator listens. */
  publicUrl: string
  /** Reports an internal error of the simulator. */
  readonly onError: (error: unknown) => void
  /** Returns a number that was not returned before. */
  readonly nextNumber: () => number
}

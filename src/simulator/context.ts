import type { CallLog } from './calls.ts'
import type { SimulatorClock } from './clock.ts'
import type { SimulatorEngine } from './engine.ts'
import type { Notifier } from './notifier.ts'
import type { RequestLog } from './request-log.ts'
import type { Rules } from './rules.ts'
import type { Store } from './store.ts'

/** The parts of one running simulator, as its doors see them. */
export interface SimulatorContext {
  readonly store: Store
  readonly clock: SimulatorClock
  readonly engine: SimulatorEngine
  /** What goes wrong. */
  readonly rules: Rules
  readonly notifier: Notifier
  readonly requests: RequestLog
  readonly calls: CallLog
  /** The address under which people reach it, without a slash at its end; known once it listens. */
  publicUrl: string
  /** Tells of a fault of the simulator itself. */
  readonly onError: (error: unknown) => void
  /** A number that was not given before. */
  readonly nextNumber: () => number
}

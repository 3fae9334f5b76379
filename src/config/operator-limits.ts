import { z } from 'zod'

/** The bounds of the calls to one operator (see docs/design/operators.md#calls-at-once). */
export interface OperatorLimits {
  /** Concurrent payment calls that a customer waits for. */
  interactiveMax: number
  /** Concurrent payment calls that no customer waits for: they never take the slots of the others. */
  backgroundMax: number
  /** Concurrent queries about payments. */
  queriesMax: number
  /** Calls of each of these three kinds that may wait for a slot. */
  queueMax: number
  requestsPerSecond: number
  /**
   * The pause before the first probe of an operator that failed. It doubles each time the circuit
   * opens again, up to two minutes; a longer setting stays as it is.
   */
  breakerOpenMs: number
}

/** The settings of these bounds, without the operator's prefix. */
export const limitSettings = {
  MAX_INTERACTIVE: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(8)
    .describe('The most calls at once for payments with a waiting customer.'),
  MAX_BACKGROUND: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(4)
    .describe('The most calls at once for payments without a waiting customer: payouts and batches.'),
  MAX_QUEUE: z.coerce
    .number()
    .int()
    .min(0)
    .max(10_000)
    .default(32)
    .describe('The most calls that may wait, for each kind: INTERACTIVE, BACKGROUND and QUERIES.'),
  MAX_QUERIES: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(8)
    .describe('The most questions about payments at once.'),
  RPS: z.coerce.number().min(1).max(10_000).default(20).describe('The most calls in one second.'),
  BREAKER_OPEN_MS: z.coerce
    .number()
    .int()
    .min(100)
    .max(600_000)
    .default(10_000)
    .describe('Pause after the operator failed, in milliseconds. It doubles up to two minutes.'),
}

export function operatorLimits(read: z.infer<z.ZodObject<typeof limitSettings>>): OperatorLimits {
  return {
    interactiveMax: read.MAX_INTERACTIVE,
    backgroundMax: read.MAX_BACKGROUND,
    queueMax: read.MAX_QUEUE,
    queriesMax: read.MAX_QUERIES,
    requestsPerSecond: read.RPS,
    breakerOpenMs: read.BREAKER_OPEN_MS,
  }
}

import { z } from 'zod'

/**
 * The bounds of the connections of one process, HTTP and WebSocket together (a connection above a bound gets
 * 503), and the time for which the process still accepts connections after SIGTERM.
 */
export interface ConnectionMaxima {
  max: number
  /** Connections of one client address; those of trusted proxies are not counted. */
  perAddressMax: number
  /**
   * The time after SIGTERM in which the process still accepts connections and requests; `/readyz` already
   * answers 503.
   */
  drainDelayMs: number
}

/**
 * The default of `perAddressMax`. Choice: mobile networks put many customers behind one address; all clients
 * of a sandbox often share one.
 */
const usualPerAddress = { production: 2_000, sandbox: 10_000 }

/** The settings of these bounds. */
export const connectionSettings = {
  CONNECTIONS_MAX: z.coerce
    .number()
    .int()
    .min(16)
    .max(1_000_000)
    .default(10_000)
    .describe(
      'Open connections of one process, HTTP and WebSocket together. Further ones get 503. ' +
        'Each takes a file descriptor.',
    ),
  CONNECTIONS_PER_ADDRESS_MAX: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .meta({
      description:
        'Open connections of one process from one client address (an IPv6 network of 64 bits). ' +
        'Connections of TRUSTED_PROXIES are not counted.',
      usual: usualPerAddress,
    }),
  DRAIN_DELAY_MS: z.coerce
    .number()
    .int()
    .min(0)
    .max(300_000)
    .default(0)
    .describe(
      'After SIGTERM the process accepts requests for so many milliseconds while /readyz ' +
        'already answers 503; then it ends within 10 s. Longer than your balancer needs to ' +
        'notice: 5000 for Kubernetes.',
    ),
}

/** Reads these settings. The mode decides the bound per address if its setting is absent. */
export function readConnectionMaxima(
  mode: 'production' | 'sandbox',
  read: z.output<z.ZodObject<typeof connectionSettings>>,
): ConnectionMaxima {
  return {
    max: read.CONNECTIONS_MAX,
    perAddressMax: read.CONNECTIONS_PER_ADDRESS_MAX ?? usualPerAddress[mode],
    drainDelayMs: read.DRAIN_DELAY_MS,
  }
}

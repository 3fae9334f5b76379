import { type Logger, pino } from 'pino'

export type Log = Logger

/**
 * Makes the service's log: JSON lines on standard error, so that standard output belongs to people and
 * scripts. Secrets are never put into a line; what might carry one is wrapped in `Secret`.
 */
export function createLog(level: string): Log {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  )
}

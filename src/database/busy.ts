import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'

/**
 * The codes of overload: no free session, a lock that was not granted in time, a statement that took too
 * long. PostgreSQL kept nothing of the transaction.
 */
const busyCodes = new Set(['53300', '55P03', '57014'])
/** The codes of a server that starts, stops, cannot be reached, or has a failing disk. Nothing was kept. */
const downCodes = new Set(['57P03', '58030', 'ECONNREFUSED', 'ENOENT'])
/** The codes of a server without disk space, memory or another resource. Nothing was kept. */
const lacksResources = /^53\w{3}$/
/** The message of pg-pool for a timeout, which has no code. */
const poolWords = 'timeout exceeded when trying to connect'

/**
 * Returns the refusal for a caller when the database could not serve it: nothing was written, and the caller
 * may retry.
 * @returns null where the error has another cause
 */
export function busyRefusal(error: unknown): DomainError | null {
  for (const { code, message } of causesOf(error)) {
    const detail = { retryAfterS: limits.overloadRetryS }
    if (busyCodes.has(code) || message.includes(poolWords))
      return new DomainError('OVERLOADED', undefined, detail)
    if (downCodes.has(code) || lacksResources.test(code))
      return new DomainError('SERVICE_DOWN', undefined, detail)
  }
  return null
}

/**
 * Yields the codes and messages of an error and its causes: Prisma wraps the error of the driver several
 * times.
 */
function* causesOf(error: unknown): Generator<{ code: string; message: string }> {
  let cause = error
  for (let depth = 0; depth < 5 && typeof cause === 'object' && cause !== null; depth += 1) {
    const { code, originalCode, message, originalMessage } = cause as Record<string, unknown>
    yield { code: String(originalCode ?? code), message: String(originalMessage ?? message) }
    const { meta } = cause as { meta?: { driverAdapterError?: unknown } }
    cause = meta?.driverAdapterError ?? (cause as { cause?: unknown }).cause
  }
}

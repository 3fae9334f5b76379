import { DomainError, UnsafeToRepeat } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'

/**
 * The codes of overload: no free session, a lock that was not granted in time, a statement that took too
 * long. PostgreSQL kept nothing of the transaction.
 */
const busyCodes = new Set(['53300', '55P03', '57014'])
/**
 * The codes of a server that starts, stops, cannot be reached, or has a failing disk; `P1001` and
 * the words are of Prisma. Nothing was kept.
 */
const downCodes = new Set([
  '57P01',
  '57P03',
  '58030',
  '08001',
  '08004',
  'ECONNREFUSED',
  'ENOENT',
  'P1001',
  'DatabaseNotReachable',
])
/**
 * The codes of a connection that broke while a statement ran: a change may have been kept or not. `P1008`,
 * `P1017` and the word are of Prisma.
 */
const lostCodes = new Set([
  '57P02',
  '08003',
  '08006',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'P1008',
  'P1017',
  'ConnectionClosed',
])
/** The messages of `pg` for such a connection, which have no code. */
const lostWords =
  /Connection terminated|connection error and is not queryable|was closed and is not queryable/
/** The codes of a server without disk space, memory or another resource. Nothing was kept. */
const lacksResources = /^53\w{3}$/
/** The message of pg-pool for a timeout, which has no code. */
const poolWords = 'timeout exceeded when trying to connect'

/**
 * Returns the refusal for a caller when the database could not serve it, and the caller may repeat the
 * request: nothing was written, or the repetition finds what was written.
 * @returns null where the error has another cause
 */
export function busyRefusal(error: unknown): DomainError | null {
  if (error instanceof UnsafeToRepeat) return isConnectionLost(error.cause) ? null : busyRefusal(error.cause)
  for (const cause of causesOf(error)) {
    const { code, message } = cause
    const detail = { retryAfterS: limits.overloadRetryS }
    if (busyCodes.has(code) || message.includes(poolWords))
      return new DomainError('OVERLOADED', undefined, detail)
    if (isDown(cause) || isLost(cause) || lacksResources.test(code))
      return new DomainError('SERVICE_DOWN', undefined, detail)
  }
  return null
}

/** Whether the connection broke while a statement ran, so that a change may have been kept or not. */
export function isConnectionLost(error: unknown): boolean {
  for (const cause of causesOf(error)) {
    if (isDown(cause)) return false
    if (isLost(cause)) return true
  }
  return false
}

/** Whether the server refused the session or ended it, or no connection was made: nothing was kept. */
function isDown({ code, severity, syscall }: Cause): boolean {
  return downCodes.has(code) || severity === 'FATAL' || syscall === 'connect'
}

function isLost({ code, message }: Cause): boolean {
  return lostCodes.has(code) || lostWords.test(message)
}

interface Cause {
  code: string
  message: string
  severity: unknown
  syscall: unknown
}

/**
 * Yields what identifies an error and its causes: Prisma wraps the error of the driver several
 * times.
 */
function* causesOf(error: unknown): Generator<Cause> {
  let cause = error
  for (let depth = 0; depth < 5 && typeof cause === 'object' && cause !== null; depth += 1) {
    const { code, kind, originalCode, message, originalMessage, severity, syscall } = cause as Record<
      string,
      unknown
    >
    yield {
      code: String(originalCode ?? code ?? kind),
      message: String(originalMessage ?? message),
      severity,
      syscall,
    }
    const { meta } = cause as { meta?: { driverAdapterError?: unknown } }
    cause = meta?.driverAdapterError ?? (cause as { cause?: unknown }).cause
  }
}

import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'

/** No free session; a row that is held too long; a statement that takes too long. All was undone. */
const busyCodes = new Set(['53300', '55P03', '57014'])
/** Starting, ending, or not there; or its disk fails. All was undone. */
const downCodes = new Set(['57P03', '58030', 'ECONNREFUSED', 'ENOENT'])
/** The statement found no room on the disk, no memory or no other resource. All was undone. */
const lacksResources = /^53\w{3}$/
/** The words of pg-pool, which gives no code. */
const poolWords = 'timeout exceeded when trying to connect'

/**
 * What a caller is told when the database had no time for it: nothing was written, and to come again.
 * @returns null where the error is another one
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

/** Prisma wraps what the driver says: the code stands deep inside. */
function* causesOf(error: unknown): Generator<{ code: string; message: string }> {
  let cause = error
  for (let depth = 0; depth < 5 && typeof cause === 'object' && cause !== null; depth += 1) {
    const { code, originalCode, message, originalMessage } = cause as Record<string, unknown>
    yield { code: String(originalCode ?? code), message: String(originalMessage ?? message) }
    const { meta } = cause as { meta?: { driverAdapterError?: unknown } }
    cause = meta?.driverAdapterError ?? (cause as { cause?: unknown }).cause
  }
}

import { type DestinationStream, type Logger, pino } from 'pino'
import { maskLine, withoutRows } from './mask.ts'

export type Log = Logger

/**
 * Makes the service's log: JSON lines on standard error, so that standard output belongs to people and
 * scripts. Secrets are never put into a line; what might carry one is wrapped in `Secret`. Telephone numbers
 * are masked in every line, whoever wrote it.
 * @param destination for tests: where the lines go instead
 */
export function createLog(
  level: string,
  destination: DestinationStream = pino.destination({ fd: 2, sync: true }),
): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: serializeError },
      hooks: { streamWrite: maskLine },
    },
    destination,
  )
}

/** A connection that broke, or that there is none. */
const lostCodes = new Set(['57P01', '57P02', '57P03', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'])
/** The same in words of `pg`, which gives no code. */
const lostWords = /^(Connection terminated|Client has encountered a connection error)/

/**
 * What an error says, and where it was thrown; of a lost connection that says nothing, and there may be many.
 * The pool of `pg` hangs a whole session on such an error: it is left out. So is what a database error quotes
 * of a row.
 */
function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { client: _client, stack, ...value } = pino.stdSerializers.err(error)
  const isLost = lostCodes.has(String(value['code'])) || lostWords.test(error.message)
  return withoutRows(isLost ? value : { ...value, stack })
}

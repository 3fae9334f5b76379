import { type DestinationStream, type Logger, pino } from 'pino'
import { maskLine, withoutRows } from './mask.ts'

export type Log = Logger

/**
 * Makes the service's log: JSON lines on standard error, so that standard output is free for people and
 * scripts. No line holds a secret: values that may be secret are wrapped in `Secret`. Telephone numbers are
 * masked in the texts of every line, also in lines about errors and messages of libraries.
 * @param destination the stream that a test reads the lines from
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

/** The error codes of a lost connection, and of a server that refuses a new one. */
const lostCodes = new Set(['57P01', '57P02', '57P03', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'])
/** The messages of `pg` for a lost connection, which have no code. */
const lostWords = /^(Connection terminated|Client has encountered a connection error)/

/**
 * Returns the fields of an error for a log line. The stack of a lost connection is left out: it explains
 * nothing, and such errors may be many. The `client` that the pool of `pg` adds to an error is left out too,
 * and so are the parts of a database error that quote a row.
 */
function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { client: _client, stack, ...value } = pino.stdSerializers.err(error)
  // A socket that could not be opened: the codes are many, `ENOENT` is one of a server that has stopped.
  const isUnopened = value['syscall'] === 'connect'
  const isLost = isUnopened || lostCodes.has(String(value['code'])) || lostWords.test(error.message)
  return withoutRows(isLost ? value : { ...value, stack })
}

import type { Pool } from 'pg'
import { type Batches, shareStatement } from '../database/batch.ts'
import { sqlFunctionOfMany, sqlType } from '../database/sql-function.ts'
import { limits } from '../shared/limits.ts'
import type { Log } from '../telemetry/log.ts'
import type { Exchange } from '../operators/operator.ts'
import type { OpenRequest } from './open-request.ts'

interface Kept extends Exchange {
  merchantId: number
  requestId: bigint
}

/**
 * Keeps what went over the wire for a request, beside the payment's own path: nobody waits for it, and what
 * the process had not written when it died is missing from this record only.
 */
export function exchangeRecorder(
  batches: Batches,
  log: Log,
  request: OpenRequest,
): (exchange: Exchange) => void {
  return (exchange) => {
    batches
      .run(keepMany, { ...exchange, merchantId: request.merchantId, requestId: request.id })
      .catch((error: unknown) =>
        log.warn({ err: error, requestId: request.id }, 'an exchange with an operator was not kept'),
      )
  }
}

const keepExchanges = sqlFunctionOfMany('keep_exchanges', {
  each: {
    merchantId: 'int',
    requestId: 'bigint',
    operation: 'text',
    method: 'text',
    path: 'text',
    status: sqlType<number | null>('smallint'),
    requestBody: 'text',
    responseBody: 'text',
    error: 'text?',
    durationMs: 'int',
    at: 'timestamptz',
  },
  takes: {},
  gives: 'void',
})

async function keep(pool: Pool, kept: readonly Kept[]): Promise<void[]> {
  const storables = kept.map((one) => ({
    ...one,
    requestBody: storable(one.requestBody),
    responseBody: storable(one.responseBody),
    error: one.error === undefined ? null : storable(one.error),
    durationMs: Math.round(one.durationMs),
  }))
  await keepExchanges(pool, storables, {})
  return kept.map(() => undefined)
}

/** What went over the wire within a moment is one statement, with one commit beside those of the payments. */
const keepMany = shareStatement(keep, undefined, limits.exchangesPaceMs)

/** PostgreSQL stores no zero characters and no halves of characters. */
function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}

import type { Pool } from 'pg'
import { type Batches, shareStatement } from '../database/batch.ts'
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

async function keep(pool: Pool, kept: readonly Kept[]): Promise<void[]> {
  await pool.query({
    name: 'keep_exchanges',
    text: `INSERT INTO operator_exchange (merchant_id, request_id, operation, method, path, status,
        request_body, response_body, error, duration_ms, at)
      SELECT * FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[], $5::text[],
        $6::smallint[], $7::text[], $8::text[], $9::text[], $10::int[], $11::timestamptz[])`,
    values: [
      kept.map((k) => k.merchantId),
      kept.map((k) => k.requestId),
      kept.map((k) => k.operation),
      kept.map((k) => k.method),
      kept.map((k) => k.path),
      kept.map((k) => k.status),
      kept.map((k) => storable(k.requestBody)),
      kept.map((k) => storable(k.responseBody)),
      kept.map((k) => (k.error === undefined ? null : storable(k.error))),
      kept.map((k) => Math.round(k.durationMs)),
      kept.map((k) => k.at.toISOString()),
    ],
  })
  return kept.map(() => undefined)
}

/** What went over the wire within a moment is one statement, with one commit beside those of the payments. */
const keepMany = shareStatement(keep, undefined, limits.exchangesPaceMs)

/** PostgreSQL stores no zero characters and no halves of characters. */
function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}

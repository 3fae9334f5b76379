import type { Pool } from 'pg'
import { sqlFunction } from '../database/sql-function.ts'
import type { CallbackHint } from '../operators/operator.ts'
import { invariant } from '../shared/invariant.ts'
import type { Provider } from '../shared/providers.ts'

const record = sqlFunction('record_callback', {
  takes: {
    ofProvider: 'provider',
    ofDedupeKey: 'text',
    ofBody: 'text',
    namedId: 'bigint?',
    namedCorrelation: 'uuid?',
    says: 'text',
  },
  gives: { isNew: 'boolean', requestId: 'bigint?' },
})

/** A callback that names a request of this service. */
export interface CallbackRecord {
  provider: Provider
  dedupeKey: string
  body: string
  /** The request's id, from the callback address; null where `correlationId` names the request. */
  requestId: bigint | null
  correlationId: string | null
  says: CallbackHint['says']
}

/**
 * Stores a callback once and makes its request due; only a query decides what the callback means.
 * @returns whether the callback was new, and the request that is due now (null where it names no request of
 * this service)
 */
export async function recordCallback(
  pool: Pool,
  { provider, dedupeKey, body, requestId, correlationId, says }: CallbackRecord,
): Promise<{ isNew: boolean; requestId: bigint | null }> {
  const [recorded] = await record(pool, {
    ofProvider: provider,
    ofDedupeKey: dedupeKey,
    ofBody: body,
    namedId: requestId,
    namedCorrelation: correlationId,
    says,
  })
  invariant(recorded, 'record_callback gives one row')
  return recorded
}

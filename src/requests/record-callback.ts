import type { Pool } from 'pg'
import { shareStatement } from '../database/shared-statements.ts'
import { sqlFunctionOfMany } from '../database/sql-function.ts'
import type { CallbackHint } from '../operators/operator.ts'
import { invariant } from '../shared/invariant.ts'
import type { Provider } from '../shared/providers.ts'
import { askWithSlot, askWhenFree, freeSlot, takeSlot } from './due.ts'
import type { OpenRequest } from './open-request.ts'
import { claimedColumns, claimPauses } from './store.ts'
import type { RequestServices } from './subjects.ts'

const recordCallbacks = sqlFunctionOfMany('record_callbacks', {
  each: {
    provider: 'provider',
    dedupeKey: 'text',
    body: 'text',
    namedId: 'bigint?',
    namedCorrelation: 'uuid?',
    outcome: 'text',
    hasSlot: 'boolean',
  },
  takes: { pauseMs: 'bigint', fenceMs: 'bigint', waits: 'boolean' },
  // All columns of the request are null where it was not claimed.
  gives: { isRecorded: 'boolean', isNew: 'boolean', requestId: 'bigint?', ...claimedColumns },
})

export interface CallbackRecord {
  provider: Provider
  dedupeKey: string
  body: string
  /** The request's id, from the callback address; null where `correlationId` names the request. */
  requestId: bigint | null
  correlationId: string | null
  says: CallbackHint['says']
}

export interface RecordedCallback {
  /** True if this call stored the callback; false if it was stored before. */
  isNew: boolean
  /** The request that the callback names; null if it names no request of this service. */
  requestId: bigint | null
  /** The request if this call claimed it; then the caller must ask about it. */
  claimed: OpenRequest | null
}

/**
 * Records a callback and begins the question about its request; only the operator's answer decides what the
 * callback means. While this process has free slots, the statement that records the callback also claims the
 * request. If no slot is free, the request is due, and the next free slot takes the oldest due request.
 * Resolves before the question is answered: after a crash another process finds the due request in the
 * database.
 */
export async function recordAndAsk(
  services: RequestServices,
  callback: CallbackRecord,
): Promise<Pick<RecordedCallback, 'requestId'>> {
  const { provider } = callback
  const hasSlot = takeSlot(services, provider)
  let claimed: OpenRequest | null = null
  try {
    const recorded = await recordCallback(services, callback, hasSlot)
    claimed = recorded.claimed
    if (!hasSlot && recorded.isNew && recorded.requestId !== null) askWhenFree(services, provider)
    return recorded
  } finally {
    if (claimed) askWithSlot(services, claimed)
    else if (hasSlot) freeSlot(services, provider)
  }
}

/**
 * Stores a callback once and makes its request due. Callbacks that arrive together share one statement.
 * @param hasSlot true if the caller can ask about the request at once: then this call claims the request
 */
export async function recordCallback(
  { sharedStatements, database }: Pick<RequestServices, 'sharedStatements' | 'database'>,
  callback: CallbackRecord,
  hasSlot = false,
): Promise<RecordedCallback> {
  const item = { callback, hasSlot }
  const recorded = await sharedStatements.run(recordTogether, item)
  if (recorded.isRecorded) return recorded
  const [alone] = await recordAll(database.pool, [item], true)
  invariant(alone, 'record_callbacks gives one row for each callback')
  return alone
}

interface Item {
  callback: CallbackRecord
  hasSlot: boolean
}

interface Answer extends RecordedCallback {
  /** False if another session has locked the row of the request: nothing was stored. */
  isRecorded: boolean
}

/** Each operator has its share of a statement, so that many callbacks of one do not delay those of others. */
const recordTogether = shareStatement(
  (pool: Pool, items: readonly Item[]) => recordAll(pool, items, false),
  ({ callback }) => callback.provider,
)

async function recordAll(pool: Pool, items: readonly Item[], waits: boolean): Promise<Answer[]> {
  const callbacks = items.map(({ callback, hasSlot }) => ({
    ...callback,
    namedId: callback.requestId,
    namedCorrelation: callback.correlationId,
    outcome: callback.says,
    hasSlot,
  }))
  const rows = await recordCallbacks(pool, callbacks, { ...claimPauses(), waits })
  return rows.map(({ isRecorded, isNew, requestId, ...request }) => {
    const isClaimed = (request.id as bigint | null) !== null
    return { isRecorded, isNew, requestId, claimed: isClaimed ? request : null }
  })
}

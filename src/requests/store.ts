import type { Pool } from 'pg'
import { type Batches, shareStatement } from '../database/batch.ts'
import { sqlFunction, sqlFunctionOfMany, sqlType } from '../database/sql-function.ts'
import type { FailureReason } from '../operators/failure-reasons.ts'
import type { OperatorExchange, OperatorHandle } from '../operators/operator.ts'
import { limits } from '../shared/limits.ts'
import type { Provider } from '../shared/providers.ts'
import type { OpenRequest, Subject } from './open-request.ts'
import type { Log } from '../telemetry/log.ts'

/**
 * What went over the wire is kept at most this often. Choice: nobody waits for it, and a payment that is
 * alone shares its commit with nobody.
 */
const exchangesPaceMs = 50

const claimRequests = sqlFunction('claim_requests', {
  takes: {
    onlyProvider: 'provider?',
    onlyTransaction: 'bigint?',
    take: 'int?',
    pauseMs: 'bigint',
    fenceMs: 'bigint',
  },
  gives: {
    id: 'bigint',
    merchantId: 'int',
    subject: sqlType<Subject>('text'),
    subjectId: 'bigint',
    provider: 'provider',
    kind: sqlType<OpenRequest['kind']>('operator_request_kind'),
    amount: 'bigint',
    phone: 'text',
    handle: sqlType<OperatorHandle>('jsonb'),
    state: sqlType<OpenRequest['state']>('operator_request_state'),
    attempt: sqlType<number>('smallint'),
    claimedAt: 'timestamptz',
    checkCount: 'int',
    ageMs: sqlType<number>('double precision'),
    leftMs: sqlType<number | null>('double precision?'),
    sinceOverMs: sqlType<number>('double precision'),
    sinceSettledMs: sqlType<number>('double precision'),
    sinceSentMs: sqlType<number>('double precision'),
    request: sqlType<OpenRequest['request']>('jsonb'),
    status: 'text',
    claimed: sqlType<OpenRequest['claimed']>('text?'),
    sinceNotifiedMs: sqlType<number | null>('double precision?'),
    rejectedReason: sqlType<FailureReason | null>('text?'),
    cancelRequested: 'boolean',
    isApproved: 'boolean',
  },
})

/**
 * Takes requests that are due to be asked about, oldest first. Until `limits.operatorQueryIntervalMs` have
 * passed nobody else takes them, on whatever node; a taker that dies leaves them due again.
 */
export function claimDue(pool: Pool, provider: Provider, take: number): Promise<OpenRequest[]> {
  return claimRequests(pool, { onlyProvider: provider, onlyTransaction: null, take, ...claimPauses() })
}

/**
 * Takes the request of one transaction now. Null where it is over, or somebody asked less than three seconds
 * ago.
 */
export async function claimOne(pool: Pool, transactionId: bigint): Promise<OpenRequest | null> {
  const only = { onlyProvider: null, onlyTransaction: transactionId, take: null }
  const [request] = await claimRequests(pool, { ...only, ...claimPauses() })
  return request ?? null
}

/** Read at each call: tests shorten them. */
function claimPauses() {
  return { pauseMs: limits.operatorQueryIntervalMs, fenceMs: limits.operatorFenceMs }
}

const claimTurn = sqlFunction('claim_send', {
  takes: {
    ofRequest: 'bigint',
    knownAttempt: 'int',
    knownAt: 'timestamptz?',
    givesUp: 'boolean',
    fenceMs: 'bigint',
    callMs: 'bigint',
    batchMax: 'int',
  },
  gives: sqlType<number | null>('smallint'),
})

/**
 * The fence: gives the right to send a request once more, to one caller, and only after the time in which an
 * earlier send may still arrive (`claim_send.sql`).
 * @param request `attempt`, as the caller knows it: what it knows is worth nothing once there is another;
 *   `claimedAt`, when it came to know, by the database's clock: what was heard behind the fence says nothing
 *   of a send that arrived after
 * @param options.givesUp takes the right so that nobody sends: also while payments out are halted, but not of
 *   a disbursement while a restore waits to be accepted, because it may have been sent after the backup
 * @returns the number of this attempt; null where somebody else has the right, or nobody now
 */
export function claimSend(
  pool: Pool,
  { id, attempt, claimedAt }: Pick<OpenRequest, 'id' | 'attempt' | 'claimedAt'>,
  { givesUp }: { givesUp: boolean } = { givesUp: false },
): Promise<number | null> {
  return claimTurn(pool, {
    ofRequest: id,
    knownAttempt: attempt,
    knownAt: claimedAt,
    givesUp,
    fenceMs: limits.operatorFenceMs,
    callMs: limits.disburseSyncDeadlineMs,
    batchMax: limits.batchInFlightMax,
  })
}

/** What was learnt about a request that goes on. */
export interface RequestRecord {
  id: bigint
  /** The send that it tells of; proof that an earlier one never left says nothing of a later one. */
  attempt: number
  /** Null where nothing was learnt. */
  state: 'unsent' | 'accepted' | 'doubt' | null
  handle: Partial<OperatorHandle> & { rejectedReason?: FailureReason }
  /** Until it is asked about, in service time; null asks no more. */
  nextCheckMs: number | null
  paymentUrl: string | null
}

const recordRequests = sqlFunctionOfMany('record_requests', {
  each: {
    id: 'bigint',
    attempt: sqlType<number>('smallint'),
    state: sqlType<RequestRecord['state']>('operator_request_state'),
    handle: 'jsonb',
    nextCheckMs: 'bigint?',
    paymentUrl: 'text?',
  },
  takes: { lateMs: 'bigint', waits: 'boolean' },
  gives: 'bigint[]',
})

/**
 * Notes what was learnt. What is over meanwhile stays over, and is asked about as late money is. What a
 * callback made due meanwhile stays due: the answer noted here may be older than the callback.
 */
export function recordRequest(batches: Batches, record: RequestRecord): Promise<void> {
  return batches.run(recordMany, record)
}

const recordMany = shareStatement(async (pool: Pool, records: readonly RequestRecord[]): Promise<void[]> => {
  const { lateCheckMs: lateMs } = limits
  const missed = Map.groupBy(records, ({ id }) => id)
  if (missed.size > 1) {
    for (const id of await recordRequests(pool, records, { lateMs, waits: false })) missed.delete(id)
  }
  // Whoever waits for a request holds no other one: those who have it may wait, over others, for who waits
  // for those.
  await Promise.all(Array.from(missed.values(), (own) => recordRequests(pool, own, { lateMs, waits: true })))
  return records.map(() => undefined)
})

const watch = sqlFunction('watch_request', {
  takes: { ofRequest: 'bigint', nextMs: 'bigint?' },
  gives: 'void',
})

/**
 * Says when a request that is settled is asked about again; null asks no more. What a callback made due
 * meanwhile stays due, and what was reversed is over.
 */
export function watchRequest(pool: Pool, id: bigint, nextMs: number | null): Promise<void> {
  return watch(pool, { ofRequest: id, nextMs })
}

interface Kept extends OperatorExchange {
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
): (exchange: OperatorExchange) => void {
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
const keepMany = shareStatement(keep, undefined, exchangesPaceMs)

/** PostgreSQL stores no zero characters and no halves of characters. */
function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}

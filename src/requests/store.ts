import type { Pool } from 'pg'
import { type SharedStatements, shareStatement } from '../database/shared-statements.ts'
import { sqlFunction, sqlFunctionOfMany, sqlType } from '../database/sql-function.ts'
import type { FailureReason } from '../operators/failure-reasons.ts'
import type { OperatorExchange, OperatorHandle } from '../operators/operator.ts'
import { limits } from '../shared/limits.ts'
import type { Provider } from '../shared/providers.ts'
import type { OpenRequest, Subject } from './open-request.ts'
import type { Log } from '../telemetry/log.ts'

/** The least time between two queries about one request (see docs/design/rules.md#bounds). */
export const claimBounds = { operatorQueryIntervalMs: 3_000 }

/**
 * The pause between two writes of wire exchanges. Choice: no caller waits for them, and one write shares its
 * commit among the exchanges of 50 ms.
 */
const exchangesPaceMs = 50

/** The columns of a claimed request, as `claimed_requests` reads them. */
export const claimedColumns = {
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
} as const

const claimRequests = sqlFunction('claim_requests', {
  takes: {
    onlyProvider: 'provider?',
    onlyTransaction: 'bigint?',
    take: 'int?',
    pauseMs: 'bigint',
    fenceMs: 'bigint',
  },
  gives: claimedColumns,
})

/**
 * Claims the requests of an operator that are due for longest. For `operatorQueryIntervalMs` no other caller
 * on any node can claim them; if the caller dies, they are due again after the fence.
 */
export function claimDue(pool: Pool, provider: Provider, take: number): Promise<OpenRequest[]> {
  return claimRequests(pool, { onlyProvider: provider, onlyTransaction: null, take, ...claimPauses() })
}

/**
 * Claims the request of one transaction now. Returns null if the service asks no more about this request, or
 * if a caller asked less than `operatorQueryIntervalMs` ago.
 */
export async function claimOne(pool: Pool, transactionId: bigint): Promise<OpenRequest | null> {
  const only = { onlyProvider: null, onlyTransaction: transactionId, take: null }
  const [request] = await claimRequests(pool, { ...only, ...claimPauses() })
  return request ?? null
}

/** Returns the pauses of a claim, read at each call because tests shorten them. */
export function claimPauses() {
  return { pauseMs: claimBounds.operatorQueryIntervalMs, fenceMs: limits.operatorFenceMs }
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
 * Takes the right to send a request once more. One caller gets it, and only after the time in which an
 * earlier send may still arrive (`claim_send.sql`).
 * @param request `attempt`: the last attempt that the caller knows; if a later attempt exists, the right is
 * refused. `claimedAt`: when the caller read the request, by the database's clock; an answer from before the
 * end of the fence says nothing about a send that arrived later
 * @param options.givesUp takes the right in order to end the request unsent: allowed while payments out are
 * halted, but not for a disbursement while a restore waits to be accepted, because the disbursement may have
 * been sent after the backup
 * @returns the number of this attempt; null if another caller has the right, or if no caller may send now
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

/** The result of a send or a question, about a request that goes on. */
export interface RequestRecord {
  id: bigint
  /**
   * The number of the send that this result is about. It matters because a proof that send 1 never left says
   * nothing about send 2.
   */
  attempt: number
  /** Null where the state is not known better than before. */
  state: 'unsent' | 'accepted' | 'doubt' | null
  handle: Partial<OperatorHandle> & { rejectedReason?: FailureReason }
  /** Time until the service asks about the request, in service time; null: never again. */
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
 * Records a result. A request that ended meanwhile stays ended, and is asked about later, because its money
 * may still arrive. A request that a callback made due meanwhile stays due, because this answer may be older
 * than the callback.
 */
export function recordRequest(sharedStatements: SharedStatements, record: RequestRecord): Promise<void> {
  return sharedStatements.run(recordMany, record)
}

const recordMany = shareStatement(async (pool: Pool, records: readonly RequestRecord[]): Promise<void[]> => {
  const { lateCheckMs: lateMs } = limits
  const missed = Map.groupBy(records, ({ id }) => id)
  if (missed.size > 1) {
    for (const id of await recordRequests(pool, records, { lateMs, waits: false })) missed.delete(id)
  }
  // Lock one request at a time: two callers that each hold one row and wait for the other would deadlock.
  await Promise.all(Array.from(missed.values(), (own) => recordRequests(pool, own, { lateMs, waits: true })))
  return records.map(() => undefined)
})

const watch = sqlFunction('watch_request', {
  takes: { ofRequest: 'bigint', nextMs: 'bigint?' },
  gives: 'void',
})

/**
 * Sets when the service asks again about a settled request; null: never again. A request that a callback made
 * due meanwhile stays due, and a reversed payment is not asked about again.
 */
export function watchRequest(pool: Pool, id: bigint, nextMs: number | null): Promise<void> {
  return watch(pool, { ofRequest: id, nextMs })
}

interface Kept extends OperatorExchange {
  merchantId: number
  requestId: bigint
}

/**
 * Makes the function that stores the HTTP exchanges of a request, in commits of their own. No caller waits
 * for them; if the process dies before the write, only these records are missing.
 */
export function exchangeRecorder(
  sharedStatements: SharedStatements,
  log: Log,
  request: OpenRequest,
): (exchange: OperatorExchange) => void {
  return (exchange) => {
    sharedStatements
      .run(keepMany, { ...exchange, merchantId: request.merchantId, requestId: request.id })
      .catch((error: unknown) =>
        log.warn({ err: error, requestId: request.id }, 'an exchange with an operator was not recorded'),
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

/**
 * Stores the exchanges of a short time in one statement, with one commit, apart from the commits of payments.
 */
const keepMany = shareStatement(keep, undefined, exchangesPaceMs)

/** Removes characters that PostgreSQL cannot store: zero characters and halves of surrogate pairs. */
function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}

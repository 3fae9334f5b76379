import type { GsmaSettings } from '../config/operators.ts'
import type { Clock } from '../shared/clock.ts'
import type { Log } from '../telemetry/log.ts'
import { type GsmaError, gsmaRefusal } from './gsma-mm-errors.ts'
import {
  type GsmaRequestState,
  type GsmaTransaction,
  readEvidence,
  readGsmaRecord,
} from './gsma-mm-records.ts'
import type { GsmaWire } from './gsma-mm-wire.ts'
import { type HttpAnswer, retryAfterOf } from './http-client.ts'
import type {
  Accepted,
  CallContext,
  InitiateOutcome,
  OperationKind,
  OperatorHandle,
  Unknown,
} from './operator.ts'
import { alarmUnreadable, wireRecord } from './wire-record.ts'

/** Answers by which the standard says no; other 4xx come from something in between. */
const refusingStatuses = new Set([400, 401, 403, 404, 409, 422])

interface Initiation {
  kind: OperationKind
  handle: OperatorHandle
  attempt: number
  ctx: CallContext
}

/** Sends a money call once and says what its answer proves. */
export function createGsmaInitiation(
  settings: GsmaSettings,
  wire: GsmaWire,
  clock: Clock,
  log: Log,
  warnUnmapped: (status: string) => void,
) {
  return async function initiate(
    kind: OperationKind,
    path: string,
    request: { handle: OperatorHandle; attempt: number; callbackUrl: string },
    body: unknown,
    ctx: CallContext,
  ): Promise<InitiateOutcome> {
    const { handle, attempt, callbackUrl } = request
    const result = await wire.call(
      {
        operation: kind,
        method: 'POST',
        path,
        correlationId: handle.correlationId,
        body,
        callbackUrl: settings.flow === 'callback' ? callbackUrl : undefined,
      },
      ctx,
    )
    if (result.kind === 'not_sent') return result
    if (result.kind === 'lost') return unknown(handle, result.cause)
    return read({ kind, handle, attempt, ctx }, result)
  }

  async function read(call: Initiation, answer: HttpAnswer): Promise<InitiateOutcome> {
    const { handle } = call
    if (answer.status >= 500) return unknown(handle, 'http_5xx')
    const record = readGsmaRecord(wireRecord(answer.json), settings.statusMap)
    const error = record?.is === 'error' ? record.error : undefined
    if (answer.status === 429 || error?.key === 'ratelimiterror') {
      return { kind: 'not_sent', cause: 'rate_limited', retryAfterMs: retryAfterOf(answer) }
    }
    if (!record) return unknown(handle, 'unreadable')
    if (error) return answer.status < 300 ? unknown(handle, 'unmapped') : ofError(call, answer, error)
    if (answer.status >= 300) return unknown(handle, 'unmapped')
    if (record.is === 'transaction') return ofTransaction(call, record, answer.digest, 'sync')
    if (record.is === 'request state') return ofState(call, record, answer.digest)
    return unknown(handle, 'unmapped')
  }

  function ofError(call: Initiation, answer: HttpAnswer, error: GsmaError): InitiateOutcome {
    const { handle, kind, attempt } = call
    if (error.key === 'duplicaterequest') return accepted(handle, { duplicate: true })
    const down = error.category === 'internal' || error.category === 'serviceunavailable'
    if (down || !refusingStatuses.has(answer.status)) return unknown(handle, 'unmapped')
    const refusal = gsmaRefusal(error, kind, answer.digest)
    if (refusal.reason === 'CREDENTIALS_REJECTED') {
      log.error({ provider: settings.provider, code: refusal.code }, 'operator rejected our credentials')
    }
    if (kind === 'disburse' && refusal.reason === 'FLOAT_INSUFFICIENT')
      return { kind: 'not_sent', cause: 'float_empty', refusal }
    // An earlier try may have done it, whatever is said about this one.
    return attempt > 1 ? unknown(handle, 'resend_refused') : { kind: 'refused', refusal }
  }

  function ofTransaction(
    call: Initiation,
    transaction: GsmaTransaction,
    digest: string,
    source: 'sync' | 'query',
  ): InitiateOutcome {
    const handle = { ...call.handle, operatorRef: transaction.reference }
    if (transaction.meaning === undefined) warnUnmapped(transaction.status)
    if (transaction.meaning !== 'settled') return accepted(handle)
    const evidence = readEvidence(transaction, call.kind, source, digest, clock.now())
    if (evidence) return { kind: 'settled', handle, evidence }
    alarmUnreadable(log, settings.provider, handle.correlationId, transaction.record)
    return unknown(handle, 'unreadable_amount')
  }

  async function ofState(
    call: Initiation,
    state: GsmaRequestState,
    digest: string,
  ): Promise<InitiateOutcome> {
    const { kind, attempt } = call
    const serverCorrelationId = state.serverCorrelationId ?? call.handle.serverCorrelationId
    const handle = {
      ...call.handle,
      serverCorrelationId,
      operatorRef: state.reference ?? call.handle.operatorRef,
    }
    if (state.status === 'failed') {
      if (attempt > 1) return unknown(handle, 'resend_refused')
      return { kind: 'refused', refusal: gsmaRefusal(state.error, kind, digest) }
    }
    const taken = accepted(handle, {
      expiresAt: state.expiresAt,
      pollLimit: state.pollLimit,
      notify: state.notify,
    })
    if (state.status === 'completed') return (await settledNow({ ...call, handle })) ?? taken
    if (state.status !== 'pending') warnUnmapped(state.status)
    return taken
  }

  /** The operator says that it is done already: its record tells how much, and spares a poll. */
  async function settledNow(call: Initiation): Promise<InitiateOutcome | null> {
    const { handle, ctx } = call
    if (handle.operatorRef === undefined) return null
    const path = `/transactions/${encodeURIComponent(handle.operatorRef)}`
    const result = await wire.call(
      { operation: 'query', method: 'GET', path, correlationId: handle.correlationId },
      ctx,
    )
    if (result.kind !== 'answered' || result.status !== 200) return null
    const record = readGsmaRecord(wireRecord(result.json), settings.statusMap)
    if (record?.is !== 'transaction' || record.meaning !== 'settled') return null
    return ofTransaction(call, record, result.digest, 'query')
  }

  function accepted(
    handle: OperatorHandle,
    more: { duplicate?: true; notify?: Accepted['notify'] | undefined } & Pick<
      Accepted,
      'expiresAt' | 'pollLimit'
    > = {},
  ): Accepted {
    const { duplicate = false, notify = settings.flow, expiresAt, pollLimit } = more
    return { kind: 'accepted', duplicate, handle, action: { type: 'push' }, expiresAt, pollLimit, notify }
  }
}

function unknown(handle: OperatorHandle, cause: Unknown['cause']): Unknown {
  return { kind: 'unknown', cause, handle }
}

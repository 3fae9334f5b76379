import type { GsmaSettings } from '../config/operators.ts'
import { invariant } from '../shared/invariant.ts'
import { currency } from '../shared/money.ts'
import { callbackAddress } from './callback-address.ts'
import { gsmaAccount } from './gsma-mm-account.ts'
import { parseGsmaCallback } from './gsma-mm-callback.ts'
import { createGsmaQuery } from './gsma-mm-query.ts'
import {
  createGsmaWire,
  type GsmaRequestState,
  type GsmaTransaction,
  type GsmaWire,
  readEvidence,
  readGsmaRecord,
  statedByGsma,
} from './gsma-mm-wire.ts'
import type {
  AcceptedOutcome,
  CallContext,
  DriverDeps,
  InitiateOutcome,
  OperationKind,
  OperatorDriver,
  OperatorHandle,
  Unknown,
} from './operator.ts'
import { alarmOtherPayment, isSamePayment } from './same-payment.ts'
import { alarmUnreadable, type WireRecord, wireRecord } from './wire-record.ts'
import type { Clock } from '../shared/clock.ts'
import type { Log } from '../telemetry/log.ts'
import { type GsmaError, gsmaRefusal } from './gsma-mm-errors.ts'
import { type HttpAnswer, retryAfterOf } from './http-client.ts'
import { oneLine } from './one-line.ts'

/** The greatest length of a description in the standard's schema. */
const descriptionMax = 160

/**
 * Makes the driver of the GSMA Mobile Money API 1.2 (and 1.1): a prompt on the customer's telephone, with
 * outcomes by callback, by polling, or at once.
 */
export function createGsmaDriver(settings: GsmaSettings, deps: DriverDeps): OperatorDriver {
  const { clock, log } = deps
  const wire = createGsmaWire(settings, clock, log)
  const { query, transactionPath, warnUnmapped } = createGsmaQuery(settings, wire, clock, log)
  const initiate = createGsmaInitiation(settings, wire, clock, log, warnUnmapped)
  const account = gsmaAccount(settings, wire, clock)
  const own = [party(...pair(settings.account))]

  return {
    provider: settings.provider,
    name: settings.driver,
    capabilities: {
      action: 'push',
      createIsIdempotent: true,
      queryByCorrelationId: true,
      disburseIsSynchronous: settings.disburseIsSynchronous,
      reversal: 'partial',
      cancel: settings.canCancel,
      partyLookup: true,
      statement: 'paged',
      callbacks: settings.flow === 'callback' ? 'unsigned' : 'none',
      promptTtlSeconds: 300,
    },
    callbackUrl: (operationId) =>
      callbackAddress(deps.callbackUrl, settings.provider, operationId, deps.callbackSecret),

    async collect(request, ctx) {
      invariant(request.payer, 'operators: a prompt needs the number of its payer')
      const debitParty = [party('msisdn', request.payer)]
      const body = { ...order(request), debitParty, creditParty: own, ...described(request.description) }
      return initiate('collect', '/transactions/type/merchantpay', request, body, ctx)
    },

    async disburse(request, ctx) {
      const creditParty = [party('msisdn', request.payee)]
      const body = { ...order(request), debitParty: own, creditParty, ...described(request.description) }
      return initiate('disburse', '/transactions/type/disbursement', request, body, ctx)
    },

    async reverse(request, ctx) {
      const reference = request.original.operatorRef
      invariant(reference, 'operators: a reversal needs the reference of the payment')
      const path = `/transactions/${encodeURIComponent(reference)}/reversals`
      return initiate('reverse', path, request, { type: 'reversal', ...order(request) }, ctx)
    },

    query,

    async cancel(handle, ctx) {
      const path = await transactionPath(handle, ctx)
      if (path === null) return 'unknown'
      const result = await wire.call(
        {
          operation: 'cancel',
          method: 'PATCH',
          path,
          correlationId: handle.correlationId,
          body: [{ op: 'replace', path: '/transactionStatus', value: 'cancelled' }],
        },
        ctx,
      )
      if (result.kind !== 'answered') return 'unknown'
      if (result.status === 200 || result.status === 204) return 'cancelled'
      return wireRecord(result.json)?.word('errorCode') === 'incorrectstate' ? 'too_late' : 'unknown'
    },

    ...account,
    parseCallback: (raw) => parseGsmaCallback(raw, settings.statusMap, deps.callbackSecret),
    close: () => wire.close(),
  }

  function order(request: { amount: bigint; handle: { clientRef: string } }) {
    return {
      amount: String(request.amount),
      currency,
      requestingOrganisationTransactionReference: request.handle.clientRef,
      requestDate: clock.now().toISOString(),
    }
  }
}

function party(key: string, value: string) {
  return { key, value }
}

function described(description: string | undefined) {
  const descriptionText = oneLine(description ?? '', descriptionMax)
  return descriptionText === '' ? {} : { descriptionText }
}

/** Splits `accountid:POOL` into its two parts. */
function pair(account: string): [string, string] {
  const colon = account.indexOf(':')
  return [account.slice(0, colon), account.slice(colon + 1)]
}

/** The statuses by which the standard refuses; other 4xx come from a gateway in between. */
const refusingStatuses = new Set([400, 401, 403, 404, 409, 422])

interface Initiation {
  kind: OperationKind
  handle: OperatorHandle
  attempt: number
  /** The payee of a disbursement. */
  payee: string | undefined
  ctx: CallContext
}

/** Makes the function that sends a money call and interprets its answer. */
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
    request: { handle: OperatorHandle; attempt: number; callbackUrl: string; payee?: string },
    body: unknown,
    ctx: CallContext,
  ): Promise<InitiateOutcome> {
    const { handle, attempt, callbackUrl } = request
    // Another person may pay a collection.
    const payee = kind === 'disburse' ? request.payee : undefined
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
    return read({ kind, handle, attempt, payee, ctx }, result)
  }

  async function read(call: Initiation, answer: HttpAnswer): Promise<InitiateOutcome> {
    const { handle } = call
    if (answer.status >= 500) return unknown(handle, 'http_5xx')
    const body = wireRecord(answer.json)
    if (body && isOther(call, body)) return unknown(handle, 'other_payment')
    const record = readGsmaRecord(body, settings.statusMap)
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

  /** True, with an alarm, for the record of another payment. */
  function isOther({ handle, payee }: Initiation, body: WireRecord): boolean {
    const [asked, stated] = [{ ...handle, payee }, statedByGsma(body)]
    if (isSamePayment(asked, stated)) return false
    alarmOtherPayment(log, settings.provider, asked, stated)
    return true
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
    // An earlier try may have succeeded, so the refusal of a resend proves nothing.
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
    if (state.status === 'completed') return (await settledNow(call, handle)) ?? taken
    if (state.status !== 'pending') warnUnmapped(state.status)
    return taken
  }

  /**
   * Reads the transaction of an operation that the operator reports as completed. The transaction contains
   * the amount, so no poll is needed. Returns null if there is no transaction that confirms the payment.
   * @param handle names the transaction; it is not kept if the transaction is another payment
   */
  async function settledNow(call: Initiation, handle: OperatorHandle): Promise<InitiateOutcome | null> {
    const { ctx } = call
    if (handle.operatorRef === undefined) return null
    const path = `/transactions/${encodeURIComponent(handle.operatorRef)}`
    const result = await wire.call(
      { operation: 'query', method: 'GET', path, correlationId: handle.correlationId },
      ctx,
    )
    if (result.kind !== 'answered' || result.status !== 200) return null
    const body = wireRecord(result.json)
    if (body && isOther(call, body)) return unknown(call.handle, 'other_payment')
    const record = readGsmaRecord(body, settings.statusMap)
    if (record?.is !== 'transaction' || record.meaning !== 'settled') return null
    return ofTransaction({ ...call, handle }, record, result.digest, 'query')
  }

  function accepted(
    handle: OperatorHandle,
    more: { duplicate?: true; notify?: AcceptedOutcome['notify'] | undefined } & Pick<
      AcceptedOutcome,
      'expiresAt' | 'pollLimit'
    > = {},
  ): AcceptedOutcome {
    const { duplicate = false, notify = settings.flow, expiresAt, pollLimit } = more
    return { kind: 'accepted', duplicate, handle, action: { type: 'push' }, expiresAt, pollLimit, notify }
  }
}

function unknown(handle: OperatorHandle, cause: Unknown['cause']): Unknown {
  return { kind: 'unknown', cause, handle }
}

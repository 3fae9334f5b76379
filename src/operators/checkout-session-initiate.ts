import type { CheckoutSettings } from '../config/operators.ts'
import type { Clock } from '../shared/clock.ts'
import type { Log } from '../telemetry/log.ts'
import { checkoutRefusal, readCheckoutError } from './checkout-session-errors.ts'
import { type createCheckoutQuery, paths, type QueryTarget, targetOf } from './checkout-session-query.ts'
import {
  checkoutEvidence,
  checkoutFailure,
  type CheckoutRecord,
  type CheckoutWire,
  readPayout,
  readSession,
} from './checkout-session-wire.ts'
import { type HttpResult, retryAfterOf } from './http-client.ts'
import type {
  CallContext,
  CollectRequest,
  DisburseRequest,
  Evidence,
  InitiateOutcome,
  NotSent,
  NotSentCause,
  OperationKind,
  OperatorHandle,
  ReverseRequest,
  Unknown,
  UnknownCause,
  Unreachable,
} from './operator.ts'
import { notSentCauses } from './operator.ts'
import { alarmUnreadable, wireRecord } from './wire-record.ts'

/**
 * The statuses by which the operator itself refuses; other 4xx come from a gateway in between, or ask to
 * wait.
 */
const refusingStatuses = new Set([400, 401, 403, 404, 409, 422])

/** Makes the functions that create sessions, payouts and reversals, and interpret the answers. */
export function createCheckoutInitiation(
  settings: CheckoutSettings,
  wire: CheckoutWire,
  questions: ReturnType<typeof createCheckoutQuery>,
  clock: Clock,
  log: Log,
) {
  /**
   * Creates a session, unless the operator has one with our reference. The operator may ignore our
   * idempotency key. So a resend, or a first call with `searchesFirst`, first searches for sessions with our
   * reference. If there are any, it uses one and expires the others that a customer could still pay.
   */
  async function session(request: CollectRequest, body: unknown, ctx: CallContext): Promise<InitiateOutcome> {
    const { handle, attempt, searchesFirst } = request
    if (attempt > 1 || searchesFirst) {
      const before = await earlier(handle, ctx)
      if (before) return before
    }
    const result = await create('collect', paths.session.one, handle, body, ctx)
    const failure = failed('collect', request, result)
    if (failure) return failure
    const [record, digest] = answered(result, (json) => readSession(json, settings.launchUrlField))
    if (!record) return unknown(handle, 'unreadable')
    if (!questions.isOwn(handle, record)) return unknown(handle, 'other_payment')
    return ofSession(record, handle, digest, 'sync', false)
  }

  async function earlier(handle: OperatorHandle, ctx: CallContext): Promise<InitiateOutcome | null> {
    const found = await questions.search('session', handle, ctx)
    if (found.kind === 'unreachable') return withoutAnswer(found, handle)
    const { records, digest } = found
    const paid = records.find(({ stands }) => stands === 'paid')
    const open = records.filter(({ stands }) => stands === 'open')
    const kept = open.find(({ id }) => id === handle.sessionId) ?? open.at(-1)
    await Promise.all(
      open.filter((orphan) => paid || orphan !== kept).map((orphan) => expireOrphan(orphan, handle, ctx)),
    )
    const record = paid ?? kept ?? records.at(-1)
    return record ? ofSession(record, handle, digest, 'query', true) : null
  }

  async function expireOrphan(
    orphan: CheckoutRecord,
    handle: OperatorHandle,
    ctx: CallContext,
  ): Promise<void> {
    const result = await expire(orphan.id, handle, ctx)
    if (result.kind === 'answered' && result.status === 200) return
    log.error(
      { provider: settings.provider, sessionId: orphan.id },
      'a second checkout session of one payment was not expired and could still be paid',
    )
  }

  function ofSession(
    record: CheckoutRecord,
    named: OperatorHandle,
    digest: string,
    source: Evidence['source'],
    duplicate: boolean,
  ): InitiateOutcome {
    const handle = { ...named, sessionId: record.id }
    const { stands, launchUrl, expiresAt } = record
    if (stands === 'paid') return settled(record, 'collect', handle, digest, source)
    // The session has ended, or its state is unclear: a query tells the outcome.
    if (stands !== 'open') return unknown(handle, 'unmapped')
    if (launchUrl === undefined) return unknown(handle, 'unreadable')
    const action = { type: 'redirect', url: launchUrl } as const
    return { kind: 'accepted', duplicate, handle, action, expiresAt, notify: 'callback' }
  }

  async function payout(request: DisburseRequest, body: unknown, ctx: CallContext): Promise<InitiateOutcome> {
    const result = await create('disburse', paths.payout.one, request.handle, body, ctx)
    const failure = failed('disburse', request, result)
    if (failure) return failure
    const [record, digest] = answered(result, readPayout)
    if (!record) return unknown(request.handle, 'unreadable')
    const asked = { ...request.handle, payee: request.payee }
    if (!questions.isOwn(asked, record)) return unknown(request.handle, 'other_payment')
    const handle = { ...request.handle, serverCorrelationId: record.id }
    if (record.stands === 'paid') return settled(record, 'disburse', handle, digest, 'sync')
    if (record.stands === 'failed') {
      const refusal = checkoutFailure(record, 'disburse', digest, clock.now())
      return request.attempt > 1 ? unknown(handle, 'resend_refused') : { kind: 'refused', refusal }
    }
    return accepted(handle)
  }

  /** Refunds a session or reverses a payout. Both undo the whole amount, and both are idempotent. */
  async function reversal(request: ReverseRequest, ctx: CallContext): Promise<InitiateOutcome> {
    const target = targetOf(request.original) ?? (await questions.locate(request.original, ctx))
    if ('kind' in target)
      return target.kind === 'absent' ? nothingToUndo(request) : withoutAnswer(target, request.handle)
    const named =
      target.resource === 'session' ? { sessionId: target.id } : { serverCorrelationId: target.id }
    const handle = { ...request.handle, ...named }
    const result = await create('reverse', reversalPath(target), handle, undefined, ctx)
    const failure = failed('reverse', { ...request, handle }, result)
    if (failure) return failure
    const done = await questions.query('reverse', handle, ctx)
    if (done.kind === 'settled') return { kind: 'settled', handle, evidence: done.evidence }
    // The answer to a reversal has no body, so it does not even prove that the operator sent it.
    return unknown(handle, 'unmapped')
  }

  function create(
    operation: OperationKind,
    path: string,
    handle: OperatorHandle,
    body: unknown,
    ctx: CallContext,
  ) {
    const { correlationId } = handle
    return wire.call({ operation, method: 'POST', path, correlationId, body, idempotent: true }, ctx)
  }

  function expire(sessionId: string, handle: OperatorHandle, ctx: CallContext): Promise<HttpResult> {
    const path = `${paths.session.one}/${encodeURIComponent(sessionId)}/expire`
    return wire.call({ operation: 'cancel', method: 'POST', path, correlationId: handle.correlationId }, ctx)
  }

  /** Returns the outcome of an unsuccessful call; null for a success. */
  function failed(
    kind: OperationKind,
    { handle, attempt }: { handle: OperatorHandle; attempt: number },
    result: HttpResult,
  ): InitiateOutcome | null {
    if (result.kind === 'not_sent') return result
    if (result.kind === 'lost') return unknown(handle, result.cause)
    const { status, json, digest } = result
    if (status >= 500) return unknown(handle, 'http_5xx')
    if (status === 429) return { kind: 'not_sent', cause: 'rate_limited', retryAfterMs: retryAfterOf(result) }
    if (status >= 200 && status < 300) return null
    const error = readCheckoutError(wireRecord(json))
    if (!error) return unknown(handle, 'unreadable')
    const refusal = refusingStatuses.has(status) ? checkoutRefusal(error, kind, digest) : undefined
    if (refusal?.reason === 'CREDENTIALS_REJECTED') {
      log.error({ provider: settings.provider, code: refusal.code }, 'operator rejected our credentials')
    }
    if (!refusal) return unknown(handle, 'unmapped')
    if (kind === 'disburse' && refusal.reason === 'FLOAT_INSUFFICIENT')
      return { kind: 'not_sent', cause: 'float_empty', refusal }
    // An earlier try may have succeeded, so the refusal of a resend proves nothing.
    return attempt > 1 ? unknown(handle, 'resend_refused') : { kind: 'refused', refusal }
  }

  function settled(
    record: CheckoutRecord,
    kind: OperationKind,
    handle: OperatorHandle,
    digest: string,
    source: Evidence['source'],
  ): InitiateOutcome {
    const evidence = checkoutEvidence(record, kind, source, digest, clock.now())
    if (!evidence) {
      alarmUnreadable(log, settings.provider, handle.correlationId, record.record)
      return unknown(handle, 'unreadable_amount')
    }
    return { kind: 'settled', handle: { ...handle, operatorRef: evidence.operatorRef }, evidence }
  }

  return { session, payout, reversal, expire }
}

/**
 * Returns the outcome of a reversal if the operator has no payment with our reference: there is nothing to
 * undo.
 */
function nothingToUndo({ handle, attempt }: ReverseRequest): InitiateOutcome {
  const refusal = { reason: 'NOT_REVERSIBLE', code: 'not-found' } as const
  return attempt > 1 ? unknown(handle, 'resend_refused') : { kind: 'refused', refusal }
}

function answered(
  result: HttpResult,
  read: (json: ReturnType<typeof wireRecord>) => CheckoutRecord | undefined,
): [record: CheckoutRecord | undefined, digest: string] {
  return result.kind === 'answered' ? [read(wireRecord(result.json)), result.digest] : [undefined, '']
}

function reversalPath({ resource, id }: QueryTarget): string {
  return `${paths[resource].one}/${encodeURIComponent(id)}/${resource === 'session' ? 'refund' : 'reverse'}`
}

/**
 * Returns the outcome of an accepted payout. The customer does nothing; the operator reports on payouts only
 * when asked.
 */
function accepted(handle: OperatorHandle): InitiateOutcome {
  return { kind: 'accepted', duplicate: false, handle, action: { type: 'push' }, notify: 'polling' }
}

/**
 * Returns the outcome of a money call that was not sent, because the search before it got no answer. An
 * earlier send may have been executed.
 */
function withoutAnswer(silence: Unreachable, handle: OperatorHandle): NotSent | Unknown {
  const { cause } = silence
  return isNotSentCause(cause) ? { ...silence, kind: 'not_sent', cause } : unknown(handle, cause)
}

function isNotSentCause(cause: NotSentCause | UnknownCause): cause is NotSentCause {
  return notSentCauses.some((known) => known === cause)
}

function unknown(handle: OperatorHandle, cause: UnknownCause): Unknown {
  return { kind: 'unknown', cause, handle }
}

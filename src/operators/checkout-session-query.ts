import type { CheckoutSettings } from '../config/operators.ts'
import type { Clock } from '../shared/clock.ts'
import type { Log } from '../telemetry/log.ts'
import {
  checkoutOutcome,
  type CheckoutRecord,
  type CheckoutWire,
  readFound,
  readPayout,
  readSession,
  statedByCheckout,
} from './checkout-session-wire.ts'
import { type HttpResult, unreachable } from './http-client.ts'
import type {
  AskedOperation,
  CallContext,
  OperationKind,
  OperatorHandle,
  QueryOutcome,
  Unreachable,
} from './operator.ts'
import { alarmOtherPayment, isSamePayment } from './same-payment.ts'
import { alarmUnreadable, type WireRecord, wireRecord } from './wire-record.ts'

export type Resource = 'session' | 'payout'
/** A session or payout, by the operator's own id. */
export interface QueryTarget {
  resource: Resource
  id: string
}
/**
 * The records with one reference or one id, oldest first, and the digest of the answer that contained them.
 */
export interface FoundSession {
  kind: 'found'
  records: readonly CheckoutRecord[]
  digest: string
}

/** The paths of the two kinds of records. */
export const paths = {
  session: { one: '/v1/checkout/sessions', search: '/v1/checkout/sessions/search' },
  payout: { one: '/v1/payout', search: '/v1/payouts/search' },
} as const

/** Makes the functions that ask a checkout operator about sessions and payouts. */
export function createCheckoutQuery(settings: CheckoutSettings, wire: CheckoutWire, clock: Clock, log: Log) {
  const read = {
    session: (record: WireRecord | undefined) => readSession(record, settings.launchUrlField),
    payout: readPayout,
  }

  async function get(
    resource: Resource,
    path: string,
    handle: OperatorHandle,
    ctx: CallContext,
    many: boolean,
  ) {
    const call = { operation: 'query', method: 'GET', path, correlationId: handle.correlationId } as const
    return found(await wire.call(call, ctx), (record) => {
      if (many) return readFound(record, read[resource])
      const one = read[resource](record)
      return one && [one]
    })
  }

  /** Reads one record by the operator's id. */
  const one = (resource: Resource, id: string, handle: OperatorHandle, ctx: CallContext) =>
    get(resource, `${paths[resource].one}/${encodeURIComponent(id)}`, handle, ctx, false)

  /** Reads every record with our reference. */
  async function search(
    resource: Resource,
    asked: AskedOperation,
    ctx: CallContext,
  ): Promise<FoundSession | Unreachable> {
    const path = `${paths[resource].search}?client_reference=${encodeURIComponent(asked.clientRef)}`
    return ownOf(asked, await get(resource, path, asked, ctx, true))
  }

  async function query(kind: OperationKind, asked: AskedOperation, ctx: CallContext): Promise<QueryOutcome> {
    if (kind === 'reverse') return ofReversal(asked, ctx)
    const resource = kind === 'collect' ? 'session' : 'payout'
    const id = kind === 'collect' ? asked.sessionId : asked.serverCorrelationId
    const named = id === undefined ? null : ownOf(asked, await one(resource, id, asked, ctx))
    const outcome = named && outcomeOf(named, kind, asked)
    const isOther = outcome?.kind === 'unreachable' && outcome.cause === 'other_payment'
    // This record failed, is absent, or is another payment's, but another record with the same reference may
    // be paid: search for all.
    if (outcome && !isOther && outcome.kind !== 'refused' && outcome.kind !== 'absent') return outcome
    const searched = outcomeOf(await search(resource, asked, ctx), kind, asked)
    return isOther && searched.kind === 'absent' ? outcome : searched
  }

  /** True for a record about the payment that was asked about; otherwise it raises an alarm. */
  function isOwn(asked: AskedOperation, record: CheckoutRecord): boolean {
    const stated = statedByCheckout(record)
    if (isSamePayment(asked, stated)) return true
    alarmOtherPayment(log, settings.provider, asked, stated)
    return false
  }

  /**
   * Leaves out the records of other payments. If there were any, the answer is not only about our reference:
   * then a record counts only if it states our reference, and no record proves no absence. A payout of ours
   * to another number is for a person to examine, so that no other record of its reference counts either.
   */
  function ownOf(asked: AskedOperation, result: FoundSession | Unreachable): FoundSession | Unreachable {
    if (result.kind === 'unreachable') return result
    const { payee: _payee, ...reference } = asked
    const isStranger = (record: CheckoutRecord) => !isSamePayment(reference, statedByCheckout(record))
    const stranger = result.records.find(isStranger)
    if (stranger) isOwn(reference, stranger)
    const records = result.records.filter(
      (record) => !isStranger(record) && (!stranger || statedByCheckout(record).clientRef !== undefined),
    )
    const isEmptied = stranger !== undefined && records.length === 0
    if (isEmptied || records.some((record) => !isOwn(asked, record)))
      return { kind: 'unreachable', cause: 'other_payment' }
    return { ...result, records }
  }

  /**
   * Returns the outcome of the record whose state comes first in `order`; of several such records, the
   * oldest.
   */
  function outcomeOf(
    result: FoundSession | Unreachable,
    kind: OperationKind,
    { correlationId }: OperatorHandle,
  ): QueryOutcome {
    if (result.kind === 'unreachable') return result
    const ranked = order.flatMap((stands) => result.records.filter((record) => record.stands === stands))
    const [first, second] = ranked
    if (!first) return { kind: 'absent', asOf: clock.now() }
    if (first.stands === 'unclear') log.warn({ provider: settings.provider, status: first.status }, unclear)
    if (second && (second.stands === 'paid' || second.stands === 'reversed')) {
      log.error(
        { provider: settings.provider, ids: ranked.map(({ id }) => id) },
        'one reference was paid twice',
      )
    }
    const outcome = checkoutOutcome(first, kind, result.digest, clock.now())
    if (outcome.kind === 'unreachable') alarmUnreadable(log, settings.provider, correlationId, first.record)
    return outcome
  }

  /** Asks about a reversal. A reversal has no record of its own: the reversed session or payout shows it. */
  async function ofReversal(handle: OperatorHandle, ctx: CallContext): Promise<QueryOutcome> {
    const target = targetOf(handle)
    if (!target) return { kind: 'absent', asOf: clock.now() }
    const result = await one(target.resource, target.id, handle, ctx)
    const [record] = result.kind === 'found' ? result.records : []
    if (record && record.id !== target.id) {
      // The record states the reference of the reversed payment, and the handle has that of the reversal.
      const asked = { ...handle, requestId: target.id }
      alarmOtherPayment(log, settings.provider, asked, { requestId: record.id })
      return { kind: 'unreachable', cause: 'other_payment' }
    }
    const outcome = outcomeOf(result, 'reverse', handle)
    if (outcome.kind === 'reversed') return { kind: 'settled', evidence: outcome.evidence }
    return outcome.kind === 'unreachable' ? outcome : { kind: 'absent', asOf: clock.now() }
  }

  /**
   * Finds by our reference the session or payout that moved the money, because the handle has no id of the
   * operator.
   */
  async function locate(
    handle: OperatorHandle,
    ctx: CallContext,
  ): Promise<QueryTarget | Unreachable | { kind: 'absent' }> {
    for (const resource of ['session', 'payout'] as const) {
      const result = await search(resource, handle, ctx)
      if (result.kind === 'unreachable') return result
      const paid = result.records.find(({ stands }) => stands === 'paid' || stands === 'reversed')
      if (paid) return { resource, id: paid.id }
    }
    return { kind: 'absent' }
  }

  return { query, search, locate, isOwn }
}

const order = ['paid', 'reversed', 'open', 'unclear', 'failed'] as const
const unclear = 'operator status without a mapping; treated as pending'

/** Returns the session or payout that a handle names; null if it has no id of the operator. */
export function targetOf(handle: OperatorHandle): QueryTarget | null {
  if (handle.sessionId !== undefined) return { resource: 'session', id: handle.sessionId }
  return handle.serverCorrelationId === undefined
    ? null
    : { resource: 'payout', id: handle.serverCorrelationId }
}

/**
 * Reads the records of an answer. Only an error in the operator's own format proves that the operator has no
 * record; the error page of a gateway does not.
 */
function found(
  result: HttpResult,
  read: (record: WireRecord | undefined) => readonly CheckoutRecord[] | undefined,
): FoundSession | Unreachable {
  const trouble = unreachable(result)
  if (trouble) return trouble
  if (result.kind !== 'answered') return { kind: 'unreachable', cause: 'unreadable' }
  const body = wireRecord(result.json)
  const absent = result.status === 404 && (body?.word('code') ?? '').endsWith('not-found')
  const records = absent ? [] : result.status === 200 ? read(body) : undefined
  if (!records) return { kind: 'unreachable', cause: result.status === 200 ? 'unreadable' : 'unmapped' }
  return {
    kind: 'found',
    records: records.toSorted((a, b) => a.createdAt - b.createdAt),
    digest: result.digest,
  }
}

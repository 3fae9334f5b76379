import type { GsmaSettings } from '../config/operators.ts'
import type { Clock } from '../shared/clock.ts'
import type { Log } from '../telemetry/log.ts'
import { type GsmaError, gsmaRefusal } from './gsma-mm-errors.ts'
import {
  type GsmaRequestState,
  type GsmaTransaction,
  type GsmaWire,
  readEvidence,
  readGsmaRecord,
  statedByGsma,
} from './gsma-mm-wire.ts'
import { type HttpAnswer, type HttpResult, unreachable } from './http-client.ts'
import type {
  AskedOperation,
  CallContext,
  OperationKind,
  OperatorHandle,
  QueryOutcome,
  Unreachable,
} from './operator.ts'
import { alarmOtherPayment, isSamePayment, type StatedPayment } from './same-payment.ts'
import { alarmUnreadable, wireRecord } from './wire-record.ts'

/**
 * The most links that are followed for one question (to a request state, to a transaction), so that an
 * operator cannot send us in circles.
 */
const stepsMax = 4

interface Question {
  kind: OperationKind
  handle: AskedOperation
  ctx: CallContext
  /** The operator's id of the request, if the question names it. */
  requestId?: string | undefined
}

/** Makes the functions that ask an operator of the standard about an operation. */
export function createGsmaQuery(settings: GsmaSettings, wire: GsmaWire, clock: Clock, log: Log) {
  const get = (question: Question, path: string) =>
    wire.call(
      { operation: 'query', method: 'GET', path, correlationId: question.handle.correlationId },
      question.ctx,
    )

  /**
   * Asks up to three questions, by different ids: the operator's id of the request (only if the operator is
   * polled and accepts more polls), our own id, and the transaction's. Each further question is asked only if
   * the operator has no record for the one before, or answered it with the record of another payment.
   */
  async function query(kind: OperationKind, handle: AskedOperation, ctx: CallContext): Promise<QueryOutcome> {
    // The operator counts these polls (`pollLimit`), but not the questions below.
    const mayPoll = settings.flow === 'polling' && handle.pollsLeft !== 0
    const requestId = mayPoll ? handle.serverCorrelationId : undefined
    const questions: [path: string | undefined, Question][] = [
      [requestId && `/requeststates/${name(requestId)}`, { kind, handle, ctx, requestId }],
      [`/responses/${name(handle.correlationId)}`, { kind, handle, ctx }],
      [handle.operatorRef && `/transactions/${name(handle.operatorRef)}`, { kind, handle, ctx }],
    ]
    let other: QueryOutcome | null = null
    for (const [path, question] of questions) {
      if (!path) continue
      const result = await get(question, path)
      if (isNoRecord(result)) continue
      const outcome = await read(question, result, stepsMax)
      if (outcome.kind !== 'unreachable' || outcome.cause !== 'other_payment') return outcome
      other = outcome
    }
    return other ?? { kind: 'absent', asOf: clock.now() }
  }

  async function read(question: Question, result: HttpResult, steps: number): Promise<QueryOutcome> {
    const trouble = unreachable(result)
    if (trouble) return trouble
    const answer = result as HttpAnswer
    const body = answer.status === 200 ? wireRecord(answer.json) : undefined
    const other = body && ofOther(question, statedByGsma(body))
    if (other) return other
    const link = body?.text('link')
    if (link !== undefined) return follow(question, link, steps)
    const record = readGsmaRecord(body, settings.statusMap)
    if (!record) return { kind: 'unreachable', cause: answer.status === 200 ? 'unreadable' : 'unmapped' }
    if (record.is === 'error') return ofError(question, record.error, answer.digest, steps < stepsMax)
    if (record.is === 'transaction') return ofTransaction(question, record, answer.digest)
    return ofState(question, record, answer.digest, steps)
  }

  /** Returns the outcome of a record about another payment, with an alarm; null for a record about ours. */
  function ofOther({ handle, requestId }: Question, stated: StatedPayment): Unreachable | null {
    const asked = { ...handle, requestId }
    if (isSamePayment(asked, stated)) return null
    alarmOtherPayment(log, settings.provider, asked, stated)
    return { kind: 'unreachable', cause: 'other_payment' }
  }

  async function follow(question: Question, link: string, steps: number): Promise<QueryOutcome> {
    const path = wire.pathOfLink(link)
    if (path === null) {
      log.error(
        { provider: settings.provider, link },
        'operator sent a link to a foreign address; not followed',
      )
      return { kind: 'unreachable', cause: 'unreadable' }
    }
    if (steps === 0) return { kind: 'unreachable', cause: 'unmapped' }
    return read(question, await get(question, path), steps - 1)
  }

  /**
   * Returns the outcome that an error object means. The error proves a refusal only if a link of the operator
   * led to it, and if its category is no failure of the operator itself.
   */
  function ofError({ kind }: Question, error: GsmaError, digest: string, linked: boolean): QueryOutcome {
    const own = error.category !== 'internal' && error.category !== 'serviceunavailable'
    if (!linked || !own) return { kind: 'unreachable', cause: 'unmapped' }
    return { kind: 'refused', refusal: gsmaRefusal(error, kind, digest) }
  }

  async function ofState(
    question: Question,
    state: GsmaRequestState,
    digest: string,
    steps: number,
  ): Promise<QueryOutcome> {
    const other = ofOther(question, { requestId: state.serverCorrelationId })
    if (other) return other
    if (state.status === 'failed')
      return { kind: 'refused', refusal: gsmaRefusal(state.error, question.kind, digest) }
    if (state.status === 'completed') {
      return state.reference === undefined
        ? { kind: 'unreachable', cause: 'unmapped' }
        : follow(question, `/transactions/${name(state.reference)}`, steps)
    }
    if (state.status !== 'pending') warnUnmapped(state.status)
    return { kind: 'pending', expiresAt: state.expiresAt }
  }

  function ofTransaction(question: Question, transaction: GsmaTransaction, digest: string): QueryOutcome {
    const { kind, handle } = question
    const { meaning, status, error } = transaction
    if (meaning === 'refused') {
      const refusal = gsmaRefusal(error, kind, digest)
      return { kind: 'refused', refusal: { ...refusal, code: refusal.code || status } }
    }
    if (meaning === undefined) warnUnmapped(status)
    if (meaning === 'pending' || meaning === undefined) return { kind: 'pending' }
    const evidence = readEvidence(transaction, kind, 'query', digest, clock.now())
    if (!evidence) {
      alarmUnreadable(log, settings.provider, handle.correlationId, transaction.record)
      return { kind: 'unreachable', cause: 'unreadable_amount' }
    }
    if (meaning === 'settled') return { kind: 'settled', evidence }
    const reversalRef = transaction.record.text('reversalReference') ?? transaction.reference
    return { kind: 'reversed', evidence, reversalRef }
  }

  function warnUnmapped(status: string): void {
    log.warn({ provider: settings.provider, status }, 'operator status without a mapping; treated as pending')
  }

  /** Returns the path of the transaction that a request made; null if the operator does not name it. */
  async function transactionPath(handle: OperatorHandle, ctx: CallContext): Promise<string | null> {
    if (handle.operatorRef !== undefined) return `/transactions/${name(handle.operatorRef)}`
    const result = await get({ kind: 'collect', handle, ctx }, `/responses/${name(handle.correlationId)}`)
    if (result.kind !== 'answered' || result.status !== 200) return null
    const path = wire.pathOfLink(wireRecord(result.json)?.text('link') ?? '')
    return path !== null && /^\/transactions\/[^/?]+$/.test(path) ? path : null
  }

  return { query, transactionPath, warnUnmapped }
}

/**
 * True if the operator's own error object says that it has no record; the error page of a gateway does not
 * prove that.
 */
function isNoRecord(result: HttpResult): boolean {
  if (result.kind !== 'answered' || result.status !== 404) return false
  const record = wireRecord(result.json)
  return record?.word('errorCategory') === 'identification' && record.text('errorCode') !== undefined
}

function name(value: string): string {
  return encodeURIComponent(value)
}

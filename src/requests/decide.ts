import type {
  DriverCapabilities,
  Evidence,
  InitiateOutcome,
  NotSent,
  QueryOutcome,
  Refusal,
} from '../operators/operator.ts'
import { limits } from '../shared/limits.ts'
import type { FinalOutcome, Expiry } from './outcome.ts'
import { nothingLeft, type OpenRequest } from './open-request.ts'
import {
  firstCheckMs,
  nextCheckMs,
  nextDisburseCheckMs,
  nextUnknownCheckMs,
  nextFloatCheckMs,
  nextReversalCheckMs,
  politeCheckMs,
  scheduleBounds,
} from './schedule.ts'
import type { RequestRecord } from './store.ts'
import type { SubjectRules } from './subjects.ts'

/**
 * The age from which a disbursement raises an alarm, at each question to which the operator gives no answer
 * or has no record (every half hour or hour). Choice: a disbursement never fails by its age, because it may
 * have been paid. Its money stays reserved; only the operator's answer ends it.
 */
const disbursementAlarmMs = 24 * 3_600_000

/** The only facts on which a decision depends, beside the operator's answer: a table can test every case. */
export interface DecisionInput {
  request: OpenRequest
  rules: SubjectRules
  operator: Pick<DriverCapabilities, 'callbacks' | 'createIsIdempotent' | 'disburseIsSynchronous'>
  /** The service's time. */
  now: Date
  /** From 0 to 1; spreads questions that would otherwise all be asked at one moment. */
  random: number
}

/** Records the result, and when the operator is asked next. */
export type RecordAction = { do: 'record' } & Pick<
  RequestRecord,
  'state' | 'handle' | 'nextCheckMs' | 'paymentUrl'
>

/** One step, which needs no second decision. */
export type Step =
  | { do: 'nothing' }
  | RecordAction
  /** Sets when a settled request is asked about again. */
  | { do: 'watch'; nextMs: number | null }
  /** Reverses the payment: the operator took the money back. */
  | { do: 'reverse'; evidence: Evidence }
  /** Expires the subject: its payer did not confirm it in time. */
  | { do: 'expire'; expiry: Expiry }
  /** Applies an outcome; then does `ifPaid` or `ifNot`, by the status afterwards. */
  | { do: 'settle'; finalOutcome: FinalOutcome; ifPaid?: Step; ifNot?: Step }

/**
 * The next action. `give up` marks a request that never left as failed. `resend` and `give up` need the right
 * to send. Without it (another caller has it, or a send may still arrive), `otherwise` is done.
 */
export type Action =
  | Step
  | { do: 'resend'; otherwise: Decision<Step> }
  | { do: 'give up'; refusal: Pick<Refusal, 'reason' | 'code' | 'message'>; otherwise: Decision<Step> }

/** One log line; the caller that carries the decision out adds the origin of the request. */
export interface LogLine {
  level: 'info' | 'warn' | 'error'
  words: string
  facts: Record<string, unknown>
}

export interface Decision<Of = Action> {
  action: Of
  /** True if the operator answered, or may have the request. */
  reached: boolean
  log: readonly LogLine[]
}

/** Decides the meaning of the answer to a send. A missing answer is never a failure. */
export function decideSent(known: DecisionInput, outcome: InitiateOutcome): Decision<Step> {
  const { request } = known
  switch (outcome.kind) {
    case 'accepted':
      return decided(recordAccepted(known, outcome))
    case 'settled': {
      const { finalOutcome, log } = paid(known, 'initiate', outcome.evidence)
      return decided({ do: 'settle', finalOutcome }, log)
    }
    case 'refused':
      return decided(refuseSend(request, outcome.refusal))
    case 'not_sent':
      return decideNotSent(known, outcome)
    case 'unknown': {
      const facts = { provider: request.provider, cause: outcome.cause }
      const pause = nextUnknownCheckMs(0, known.random)
      const action = record('doubt', { handle: outcome.handle, nextCheckMs: pause })
      return decided(action, [{ level: 'info', words: 'the outcome of a send is unknown', facts }])
    }
  }
}

/**
 * Decides the meaning of the answer to a question. A subject expires only after the operator was asked; while
 * the operator is out of reach, nothing changes.
 * @param outcome null where the service asked nothing, because the request provably never left
 */
export function decideAsked(known: DecisionInput, outcome: QueryOutcome | null): Decision {
  if (outcome === null) return decideUnsent(known)
  const { action, reached, log } =
    known.request.state === 'settled' ? decideWatched(known, outcome) : decideOpen(known, outcome)
  return { action, reached, log: [...contradictions(known.request, outcome), ...log] }
}

/** Decides on a request that provably never left: the service sends it, or after a time ends it as failed. */
function decideUnsent(known: DecisionInput): Decision {
  const { request, random } = known
  if (waitedEnough(known)) return giveUp(request, decided({ do: 'nothing' }, [], false))
  // Other requests of the batch may be under way; this request gets its turn soon.
  const otherwise =
    request.subject === 'recipient'
      ? record(null, { nextCheckMs: nextUnknownCheckMs(request.checkCount, random) })
      : ({ do: 'nothing' } as const)
  return decided({ do: 'resend', otherwise: decided(otherwise, [], false) }, [], false)
}

function decideOpen(known: DecisionInput, outcome: QueryOutcome): Decision {
  const { request, rules } = known
  switch (outcome.kind) {
    case 'settled': {
      const { finalOutcome, log } = paid(known, 'query', outcome.evidence)
      return decided({ do: 'settle', finalOutcome, ifNot: askNoMore }, log)
    }
    case 'reversed': {
      // The operator took the money back before the service recorded the payment. Two commits record the
      // payment and the reversal; until the second, which ends the questions, the request is due.
      const { finalOutcome, log } = paid(known, 'query', outcome.evidence)
      const ifPaid = { do: 'reverse', evidence: outcome.evidence } as const
      return decided(
        { do: 'settle', finalOutcome: { ...finalOutcome, watchMs: 0 }, ifPaid, ifNot: askNoMore },
        log,
      )
    }
    case 'refused': {
      const finalOutcome = { status: 'failed', source: 'query', refusal: outcome.refusal } as const
      return decided(
        rules.states.canMove(request.status, 'failed') ? { do: 'settle', finalOutcome } : askNoMore,
      )
    }
    case 'absent':
      return decideAbsent(known, outcome)
    case 'pending':
      return keepAsking(known, outcome)
    case 'unreachable':
      return decideUnreachable(known, outcome)
  }
}

/** Decides on a request that the operator has no record of. An accepted request is not sent again. */
function decideAbsent(known: DecisionInput, absent: Extract<QueryOutcome, { kind: 'absent' }>): Decision {
  const { request, rules, operator } = known
  const otherwise = keepAsking(known, absent)
  if (request.state === 'accepted') {
    const words = 'the operator lost a request that it had accepted'
    return { ...otherwise, log: [{ level: 'warn', words, facts: {} }, ...otherwise.log] }
  }
  // The operator rejected the last send, and has no record of any other: so it executed none.
  if (request.rejectedReason && waitedEnough(known)) return giveUp(request, otherwise)
  // A disbursement ends by the operator's record only: it is sent again, also while its batch is cancelled.
  if (request.kind === 'collect' && request.cancelRequested) return otherwise
  const isYoung = request.ageMs < rules.resendAbsentForMs
  return isYoung && operator.createIsIdempotent ? decided({ do: 'resend', otherwise }) : otherwise
}

/** Decides on a question without an answer: the service asks again later, also about an ended request. */
function decideUnreachable(
  known: DecisionInput,
  { cause, retryAfterMs }: Extract<QueryOutcome, { kind: 'unreachable' }>,
): Decision<Step> {
  const log = alarmWhereOwed(known, cause)
  const { request, random } = known
  const pause = log.length > 0 ? regularMs(known, 'absent') : nextUnknownCheckMs(request.checkCount, random)
  const action = record(null, { nextCheckMs: Math.max(retryAfterMs ?? 0, pause) })
  // The operator answered, but with an amount that cannot be read, or about another payment: the payment
  // stays open.
  return decided(action, log, cause === 'unreadable_amount' || cause === 'other_payment')
}

/**
 * Decides on a settled request: only the answer `reversed` changes it. After any other answer the service
 * asks again (`reversalChecksMs`) if the operator does not report reversals, or if a callback claimed one.
 */
function decideWatched({ request, operator, random }: DecisionInput, outcome: QueryOutcome): Decision<Step> {
  if (outcome.kind === 'reversed') return decided({ do: 'reverse', evidence: outcome.evidence })
  const reached = outcome.kind !== 'unreachable'
  const isDisowned = outcome.kind === 'refused' || outcome.kind === 'absent'
  const words = 'the operator denies a payment that it had confirmed'
  // The times are those of the claim, because the answer may have taken long to arrive.
  const sincePaidMs = request.sinceSettledMs
  const sinceNotifiedMs = request.claimed === 'reversed' ? request.sinceNotifiedMs : null
  const sinceMs = Math.min(sincePaidMs, sinceNotifiedMs ?? sincePaidMs)
  // Only an answer ends the watch: otherwise a reversal during an outage would be missed.
  const nextMs = reached
    ? nextReversalCheckMs(reportsReversals(request, operator), sinceMs)
    : nextUnknownCheckMs(request.checkCount, random)
  const log = isDisowned ? [{ level: 'error' as const, words, facts: { outcome } }] : []
  return decided({ do: 'watch', nextMs }, log, reached)
}

/**
 * Decides on a request without an outcome: it expires, or is asked about again later. It is asked about no
 * more if it ended long ago, or if it ended and the operator has no record of it.
 */
function keepAsking(
  known: DecisionInput,
  outcome: Extract<QueryOutcome, { kind: 'pending' | 'absent' }>,
): Decision<Step> {
  const { request, rules } = known
  const leftMs = request.leftMs ?? Number.POSITIVE_INFINITY
  if (leftMs <= 0 && rules.states.canMove(request.status, 'expired'))
    return decided({ do: 'expire', expiry: { status: 'expired', source: 'service' } })
  const log = outcome.kind === 'absent' ? alarmWhereOwed(known, outcome.kind) : []
  // A subject that never expires has no end for which to save the last question.
  const before = request.leftMs === null ? undefined : request.handle.pollsLeft
  const pollsLeft = before === undefined ? undefined : Math.max(0, before - 1)
  const regular = regularMs(known, outcome.kind)
  const nextMs =
    outcome.kind === 'pending'
      ? politeCheckMs(regular, { ...outcome, pollsLeft }, known.now, leftMs)
      : Math.min(soonMs(known, regular), regular, leftMs)
  const hasEnded = request.state === 'refused' || request.state === 'closed'
  const isGone =
    (hasEnded && outcome.kind === 'absent') || request.sinceOverMs > scheduleBounds.lateChecksForMs
  const action = record(outcome.kind === 'pending' ? 'accepted' : 'doubt', {
    handle: { pollsLeft },
    nextCheckMs: isGone ? null : leftMs <= 0 ? limits.lateCheckMs : nextMs,
  })
  return decided(action, log)
}

/** Records that the operator has the request: its customer is asked, or the money is on its way. */
function recordAccepted(
  known: DecisionInput,
  outcome: Extract<InitiateOutcome, { kind: 'accepted' }>,
): RecordAction {
  const { request, now, random } = known
  const { action, notify, pollLimit, pollAfterMs } = outcome
  const soon = firstCheckMs(request.kind, notify, random)
  const leftMs = request.leftMs ?? Number.POSITIVE_INFINITY
  const asked = { ...outcome, pollsLeft: request.leftMs === null ? undefined : pollLimit }
  const next = politeCheckMs(pollAfterMs ?? soon, asked, now, leftMs)
  return record('accepted', {
    handle: { ...outcome.handle, pollsLeft: pollLimit },
    paymentUrl: action.type === 'redirect' ? action.url : null,
    // The operator knew this request already: only a question tells its outcome.
    nextCheckMs: outcome.duplicate ? 0 : next,
  })
}

/** Applies a refusal to one send. The refusal ends nothing if there is a later send. */
function refuseSend({ attempt }: OpenRequest, refusal: Refusal): Step {
  return { do: 'settle', finalOutcome: { status: 'failed', source: 'initiate', refusal, attempt } }
}

/**
 * Decides on a send that was provably not executed. The proof holds for this attempt only: an earlier attempt
 * may have been executed. So the request becomes `unsent` only if no earlier attempt reached the operator.
 */
function decideNotSent(known: DecisionInput, { retryAfterMs, refusal }: NotSent): Decision<Step> {
  const { request, rules, random } = known
  if (refusal) {
    const facts = { provider: request.provider, refusal }
    const alarm = { level: 'error', words: 'alarm: our float at an operator is empty', facts } as const
    const log = request.rejectedReason ? [] : [alarm]
    if (!rules.waitsForFloat) return decided(refuseSend(request, refusal), log)
    const state = nothingLeft(request) ? 'unsent' : 'doubt'
    const nextMs = nextFloatCheckMs(request.checkCount, random)
    return decided(record(state, { handle: { rejectedReason: refusal.reason }, nextCheckMs: nextMs }), log)
  }
  const soon = retryAfterMs ?? nextUnknownCheckMs(request.checkCount, random)
  const pause = Math.min(soon, limits.resendForMs)
  if (!nothingLeft(request)) return decided(record('doubt', { nextCheckMs: pause }), [], false)
  // The next check is no later than the time at which the request ends unsent.
  const leftMs = Math.max(0, unsentForMs(known) - request.ageMs)
  return decided(record('unsent', { nextCheckMs: Math.min(pause, leftMs) }), [], false)
}

/** Returns the outcome of a payment, and when the operator is asked whether it took the money back. */
function paid(
  { request, operator }: DecisionInput,
  source: 'initiate' | 'query',
  evidence: Evidence,
): { finalOutcome: Extract<FinalOutcome, { status: 'success' }>; log: LogLine[] } {
  const watchMs = nextReversalCheckMs(reportsReversals(request, operator), 0)
  const finalOutcome = { status: 'success', source, evidence, watchMs, question: request.checkCount } as const
  const { amount, kind } = request
  if (evidence.amount === amount) return { finalOutcome, log: [] }
  const words = evidence.amount > amount ? saysMore[kind] : saysLess
  return { finalOutcome, log: [{ level: 'error', words, facts: { asked: amount, evidence } }] }
}

/** An excess, and the rest of a payment out, wait for people: `npm run admin -- difference list`. */
const saysMore = {
  collect: 'alarm: an operator says that more was paid than asked',
  disburse: 'alarm: an operator paid out too much',
} as const satisfies Record<OpenRequest['kind'], string>
const saysLess = 'alarm: an operator says that less was paid than asked'

/** Marks a request that never left as failed. The reason is the operator's, if the operator gave a reason. */
function giveUp({ rejectedReason }: OpenRequest, otherwise: Decision<Step>): Decision {
  const refusal = rejectedReason
    ? { reason: rejectedReason, code: 'not_sent' }
    : {
        reason: 'OPERATOR_UNAVAILABLE' as const,
        code: 'not_sent',
        message: 'The operator could not be reached.',
      }
  return decided({ do: 'give up', refusal, otherwise }, [], otherwise.reached)
}

/** Returns a warning if the operator's callback claimed another final outcome. The answer counts. */
function contradictions({ claimed }: OpenRequest, outcome: QueryOutcome): LogLine[] {
  const isFinal = outcome.kind === 'settled' || outcome.kind === 'refused'
  if (claimed === null || claimed === 'pending' || !isFinal || claimed === outcome.kind) return []
  const facts = { claimed, answered: outcome.kind }
  return [{ level: 'warn', words: 'an operator contradicts its own callback', facts }]
}

/** Returns an alarm if an open disbursement is older than `disbursementAlarmMs`; otherwise nothing. */
function alarmWhereOwed({ request, rules }: DecisionInput, answered: string): LogLine[] {
  const isOpen = request.kind === 'disburse' && request.status === rules.open
  if (!isOpen || request.ageMs < disbursementAlarmMs) return []
  const facts = { provider: request.provider, answered }
  return [{ level: 'error', words: 'alarm: an operator does not tell the outcome of a disbursement', facts }]
}

/** True if a request that never left is sent no more: its time is over, or its batch is being cancelled. */
function waitedEnough(known: DecisionInput): boolean {
  return known.request.cancelRequested === true || known.request.ageMs >= unsentForMs(known)
}

/**
 * Returns how long the service tries to send an unsent request. An approved request is tried as long as a
 * payout, so that people need not approve the payment again.
 */
function unsentForMs({ request, rules }: DecisionInput): number {
  return request.isApproved ? limits.payoutUnsentForMs : rules.unsentForMs
}

/** Returns the regular pause before the next question. */
function regularMs({ request, operator, random }: DecisionInput, heard: 'pending' | 'absent'): number {
  const notify = callsBack(operator, request.kind) ? 'callback' : 'polling'
  return request.kind === 'collect' || heard === 'absent'
    ? nextCheckMs(notify, request.ageMs, random)
    : nextDisburseCheckMs(notify, request.ageMs, request.sinceSentMs ?? 0, random)
}

/**
 * Returns a short pause for a request that the service may have to send again, so that it is asked about at
 * least once between the end of its fence and the age from which it is not sent again.
 */
function soonMs({ request, random }: DecisionInput, regular: number): number {
  if (request.ageMs >= limits.resendForMs) return regular
  const window = limits.resendForMs - limits.operatorFenceMs
  return Math.min(nextUnknownCheckMs(request.checkCount, random), window / 2)
}

/**
 * True if a callback will tell that the operator took the money back. False once such a callback has come: if
 * the operator's records did not confirm it, no second callback follows, so the service must ask.
 */
function reportsReversals({ claimed, kind }: OpenRequest, operator: DecisionInput['operator']): boolean {
  return claimed !== 'reversed' && callsBack(operator, kind)
}

/** True if the operator reports the outcome of a request by a callback. */
function callsBack(operator: DecisionInput['operator'], kind: OpenRequest['kind']): boolean {
  // An operator that answers a disbursement with its final state need not call back about it.
  return operator.callbacks !== 'none' && !(kind === 'disburse' && operator.disburseIsSynchronous)
}

/** The step that ends the questions: the subject had ended already, and no further outcome can come. */
const askNoMore = record('accepted', { nextCheckMs: null })

function record(
  state: RecordAction['state'],
  more: Partial<RecordAction> & Pick<RecordAction, 'nextCheckMs'>,
): RecordAction {
  return { do: 'record', state, handle: {}, paymentUrl: null, ...more }
}

function decided<Of extends Action>(action: Of, log: readonly LogLine[] = [], reached = true): Decision<Of> {
  return { action, reached, log }
}

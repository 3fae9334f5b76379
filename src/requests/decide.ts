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
  nextCheckMs,
  nextDisburseCheckMs,
  nextUnknownCheckMs,
  nextFloatCheckMs,
  nextReversalCheckMs,
  politeCheckMs,
} from './schedule.ts'
import type { RequestRecord } from './store.ts'
import type { SubjectRules } from './subjects.ts'

/**
 * Somebody is called about a disbursement that its operator gives no account of for so long, or that is out
 * of reach, and at each question from then on: one an hour at most. Choice: it never fails by its age, for
 * it may have been paid, and its money stays set aside; only the operator's word ends it.
 */
const disbursementAlarmMs = 24 * 3_600_000

// What an operator's answer means for a request: pure, so that every case can be tested in a table.

/** What a decision depends on, beside the operator's answer. */
export interface DecisionInput {
  request: OpenRequest
  rules: SubjectRules
  operator: Pick<DriverCapabilities, 'callbacks' | 'createIsIdempotent' | 'disburseIsSynchronous'>
  /** The service's time. */
  now: Date
  /** From 0 to 1; spreads questions that would all be asked at one moment. */
  random: number
}

/** Writes down what was learnt, and when the operator is asked next. */
export type RecordAction = { do: 'note' } & Pick<
  RequestRecord,
  'state' | 'handle' | 'nextCheckMs' | 'paymentUrl'
>

/** One step, which needs no second decision. */
export type Step =
  | { do: 'nothing' }
  | RecordAction
  /** Says when a request that is settled is asked about again. */
  | { do: 'watch'; nextMs: number | null }
  /** The operator gave back what was paid. */
  | { do: 'reverse'; evidence: Evidence }
  /** Nobody confirmed it in time. */
  | { do: 'expire'; expiry: Expiry }
  /** Brings an outcome; then `ifPaid` or `ifNot`, by what stands afterwards. */
  | { do: 'settle'; finalOutcome: FinalOutcome; ifPaid?: Step; ifNot?: Step }

/**
 * What is done next. Sending again and giving up need the right to send: where another caller has it, or an
 * earlier send may still arrive, `otherwise` is done instead.
 */
export type Action =
  | Step
  | { do: 'resend'; otherwise: Decision<Step> }
  | { do: 'give up'; refusal: Pick<Refusal, 'reason' | 'code' | 'message'>; otherwise: Decision<Step> }

/** A line for the log; whoever carries the decision out adds what the request is about. */
export interface LogLine {
  level: 'info' | 'warn' | 'error'
  words: string
  facts: Record<string, unknown>
}

export interface Decision<Of = Action> {
  action: Of
  /** Whether the operator answered, or may have. */
  reached: boolean
  log: readonly LogLine[]
}

/** Decides what the answer to a send means. An answer that does not come is never a failure. */
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
      return decided(action, [{ level: 'info', words: 'outcome unknown', facts }])
    }
  }
}

/**
 * Decides what the answer to a question means. The operator is asked before anything expires; while it is out
 * of reach nothing changes.
 * @param outcome null where nothing was asked, because the request provably never left
 */
export function decideAsked(known: DecisionInput, outcome: QueryOutcome | null): Decision {
  if (outcome === null) return decideUnsent(known)
  const { action, reached, log } =
    known.request.state === 'settled' ? decideWatched(known, outcome) : decideOpen(known, outcome)
  return { action, reached, log: [...contradictions(known.request, outcome), ...log] }
}

/** What provably never left: sent until nobody waits for it any more, then it failed. */
function decideUnsent(known: DecisionInput): Decision {
  const { request, random } = known
  if (waitedEnough(known)) return giveUp(request, decided({ do: 'nothing' }, [], false))
  // Of a batch others may have their turn; theirs comes soon.
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
      // Paid and taken back before anybody asked: both happened, in this order. They are two commits: until
      // the second, which asks no more, it is due.
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

/** The operator has no record. Where an answer ever said that it had one, it is not sent again. */
function decideAbsent(known: DecisionInput, absent: Extract<QueryOutcome, { kind: 'absent' }>): Decision {
  const { request, rules, operator } = known
  const otherwise = keepAsking(known, absent)
  if (request.state === 'accepted') {
    const words = 'the operator lost a request that it had accepted'
    return { ...otherwise, log: [{ level: 'warn', words, facts: {} }, ...otherwise.log] }
  }
  // Its last send was turned away, and nothing is known of any other: it never left.
  if (request.rejectedReason && waitedEnough(known)) return giveUp(request, otherwise)
  const isYoung = request.ageMs < rules.resendAbsentForMs
  return isYoung && operator.createIsIdempotent ? decided({ do: 'resend', otherwise }) : otherwise
}

/** Nothing was learnt: also a callback about what is over waits until the operator can be asked. */
function decideUnreachable(
  known: DecisionInput,
  { cause, retryAfterMs }: Extract<QueryOutcome, { kind: 'unreachable' }>,
): Decision<Step> {
  const log = alarmWhereOwed(known, cause)
  const { request, random } = known
  const pause = log.length > 0 ? regularMs(known, 'absent') : nextUnknownCheckMs(request.checkCount, random)
  const action = record(null, { nextCheckMs: Math.max(retryAfterMs ?? 0, pause) })
  // The operator answered: the payment is open until an answer names an amount that can be read.
  return decided(action, log, cause === 'unreadable_amount')
}

/**
 * What was paid may be taken back: only that moves it. Any other answer leaves it as it stands, and is asked
 * for again on a sparse schedule where the operator tells nothing by itself, or told just this.
 */
function decideWatched({ request, operator, random }: DecisionInput, outcome: QueryOutcome): Decision<Step> {
  if (outcome.kind === 'reversed') return decided({ do: 'reverse', evidence: outcome.evidence })
  const reached = outcome.kind !== 'unreachable'
  const isDisowned = outcome.kind === 'refused' || outcome.kind === 'absent'
  const words = 'the operator disowns a payment'
  // As of the claim, just before the question: the answer may have taken long to arrive.
  const sincePaidMs = request.sinceSettledMs
  const sinceNotifiedMs = request.claimed === 'reversed' ? request.sinceNotifiedMs : null
  const sinceMs = Math.min(sincePaidMs, sinceNotifiedMs ?? sincePaidMs)
  // Only an answer ends the watch: what was taken back while it was out of reach would be lost.
  const nextMs = reached
    ? nextReversalCheckMs(reportsReversals(request, operator), sinceMs)
    : nextUnknownCheckMs(request.checkCount, random)
  const log = isDisowned ? [{ level: 'error' as const, words, facts: { outcome } }] : []
  return decided({ do: 'watch', nextMs }, log, reached)
}

/** Not decided yet: expires when its time is over (it was asked just now), else is asked again later. */
function keepAsking(
  known: DecisionInput,
  outcome: Extract<QueryOutcome, { kind: 'pending' | 'absent' }>,
): Decision<Step> {
  const { request, rules } = known
  const leftMs = request.leftMs ?? Number.POSITIVE_INFINITY
  if (leftMs <= 0 && rules.states.canMove(request.status, 'expired'))
    return decided({ do: 'expire', expiry: { status: 'expired', source: 'service' } })
  const log = outcome.kind === 'absent' ? alarmWhereOwed(known, outcome.kind) : []
  // What never ends has no end to keep the last question for.
  const before = request.leftMs === null ? undefined : request.handle.pollsLeft
  const pollsLeft = before === undefined ? undefined : Math.max(0, before - 1)
  const regular = regularMs(known, outcome.kind)
  const nextMs =
    outcome.kind === 'pending'
      ? politeCheckMs(regular, { ...outcome, pollsLeft }, known.now, leftMs)
      : Math.min(soonMs(known, regular), regular, leftMs)
  const hasEnded = request.state === 'refused' || request.state === 'closed'
  const isGone = (hasEnded && outcome.kind === 'absent') || request.sinceOverMs > limits.lateChecksForMs
  const action = record(outcome.kind === 'pending' ? 'accepted' : 'doubt', {
    handle: { pollsLeft },
    nextCheckMs: isGone ? null : leftMs <= 0 ? limits.lateCheckMs : nextMs,
  })
  return decided(action, log)
}

/** The operator has the request: its customer is asked, or the money is on its way. */
function recordAccepted(
  known: DecisionInput,
  outcome: Extract<InitiateOutcome, { kind: 'accepted' }>,
): RecordAction {
  const { request, now, random } = known
  const { action, notify, pollLimit, pollAfterMs } = outcome
  const soon =
    request.kind === 'collect' ? nextCheckMs(notify, 0, random) : nextDisburseCheckMs(notify, 0, 0, random)
  const leftMs = request.leftMs ?? Number.POSITIVE_INFINITY
  const asked = { ...outcome, pollsLeft: request.leftMs === null ? undefined : pollLimit }
  const next = politeCheckMs(pollAfterMs ?? soon, asked, now, leftMs)
  return record('accepted', {
    handle: { ...outcome.handle, pollsLeft: pollLimit },
    paymentUrl: action.type === 'redirect' ? action.url : null,
    // A duplicate was executed before: only a question tells what became of it.
    nextCheckMs: outcome.duplicate ? 0 : next,
  })
}

/** The send is refused. It ends nothing where it was sent again meanwhile: the operator may have that one. */
function refuseSend({ attempt }: OpenRequest, refusal: Refusal): Step {
  return { do: 'settle', finalOutcome: { status: 'failed', source: 'initiate', refusal, attempt } }
}

/**
 * Proof that nothing left holds for this attempt; an earlier one may have. What an empty float turned away
 * after the operator had no record of it never left at all.
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
  // It is given up on time.
  const leftMs = Math.max(0, unsentForMs(known) - request.ageMs)
  return decided(record('unsent', { nextCheckMs: Math.min(pause, leftMs) }), [], false)
}

/** The operator paid, or was paid: its word, and when it is asked whether it took that back. */
function paid(
  { request, operator }: DecisionInput,
  source: 'initiate' | 'query',
  evidence: Evidence,
): { finalOutcome: Extract<FinalOutcome, { status: 'success' }>; log: LogLine[] } {
  const watchMs = nextReversalCheckMs(reportsReversals(request, operator), 0)
  const finalOutcome = { status: 'success', source, evidence, watchMs, question: request.checkCount } as const
  const { amount, kind } = request
  if (evidence.amount === amount) return { finalOutcome, log: [] }
  const words = evidence.amount > amount ? saysMore[kind] : 'another amount was paid'
  return { finalOutcome, log: [{ level: 'error', words, facts: { asked: amount, evidence } }] }
}

/** The excess of a collection waits for a person: `npm run admin -- excess list`. */
const saysMore = {
  collect: 'alarm: an operator says that more was paid than asked',
  disburse: 'alarm: an operator paid out too much',
} as const satisfies Record<OpenRequest['kind'], string>

/** What never left failed, for the reason that its operator gave, if it gave one. */
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

/** The operator's answer counts; that its callback said otherwise is worth a look. */
function contradictions({ claimed }: OpenRequest, outcome: QueryOutcome): LogLine[] {
  const isFinal = outcome.kind === 'settled' || outcome.kind === 'refused'
  if (claimed === null || claimed === 'pending' || !isFinal || claimed === outcome.kind) return []
  const facts = { claimed, answered: outcome.kind }
  return [{ level: 'warn', words: 'a callback contradicts its operator', facts }]
}

/**
 * Calls somebody, each time it is asked, about a disbursement that its operator gives no account of for
 * `disbursementAlarmMs`: no question ends that, and its money stays set aside.
 */
function alarmWhereOwed({ request, rules }: DecisionInput, answered: string): LogLine[] {
  const isOpen = request.kind === 'disburse' && request.status === rules.open
  if (!isOpen || request.ageMs < disbursementAlarmMs) return []
  const facts = { provider: request.provider, answered }
  return [{ level: 'error', words: 'alarm: an operator gives no account of a disbursement', facts }]
}

/** Whether nobody waits any more for what never left. */
function waitedEnough(known: DecisionInput): boolean {
  return known.request.cancelRequested === true || known.request.ageMs >= unsentForMs(known)
}

/** What people approved is tried as long as a payout is: they are not asked again for a short outage. */
function unsentForMs({ request, rules }: DecisionInput): number {
  return request.isApproved ? limits.payoutUnsentForMs : rules.unsentForMs
}

/** The pause before the next question, as the schedule has it. */
function regularMs({ request, operator, random }: DecisionInput, heard: 'pending' | 'absent'): number {
  const notify = callsBack(operator, request.kind) ? 'callback' : 'polling'
  return request.kind === 'collect' || heard === 'absent'
    ? nextCheckMs(notify, request.ageMs, random)
    : nextDisburseCheckMs(notify, request.ageMs, request.sinceSentMs ?? 0, random)
}

/**
 * What may have to be sent again is asked about soon: once at least between the end of its fence and the
 * moment when the customer is gone.
 */
function soonMs({ request, random }: DecisionInput, regular: number): number {
  if (request.ageMs >= limits.resendForMs) return regular
  const window = limits.resendForMs - limits.operatorFenceMs
  return Math.min(nextUnknownCheckMs(request.checkCount, random), window / 2)
}

/**
 * Whether the operator tells by itself that it took money back. One that called to say so, and whose books
 * lag behind, calls no second time: it is asked like one that never calls.
 */
function reportsReversals({ claimed, kind }: OpenRequest, operator: DecisionInput['operator']): boolean {
  return claimed !== 'reversed' && callsBack(operator, kind)
}

/** Whether the operator tells by itself what becomes of a request. */
function callsBack(operator: DecisionInput['operator'], kind: OpenRequest['kind']): boolean {
  // Of what is answered at once it keeps no address.
  return operator.callbacks !== 'none' && !(kind === 'disburse' && operator.disburseIsSynchronous)
}

/** It was over already, and now nothing more can come. */
const askNoMore = record('accepted', { nextCheckMs: null })

function record(
  state: RecordAction['state'],
  more: Partial<RecordAction> & Pick<RecordAction, 'nextCheckMs'>,
): RecordAction {
  return { do: 'note', state, handle: {}, paymentUrl: null, ...more }
}

function decided<Of extends Action>(action: Of, log: readonly LogLine[] = [], reached = true): Decision<Of> {
  return { action, reached, log }
}

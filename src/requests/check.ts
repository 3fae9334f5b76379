import type { Services } from '../context.ts'
import type { QueryOutcome, Refusal } from '../operators/operator.ts'
import {
  nextCheckMs,
  nextDisburseCheckMs,
  nextDoubtCheckMs,
  politeCheckMs,
} from '../operators/poll-schedule.ts'
import { causeOf, noteRequest, type OpenRequest, watchRequest } from '../operators/requests.ts'
import { limits } from '../shared/limits.ts'
import {
  callContext,
  callsBack,
  deadlineIn,
  giveUp,
  leftMs,
  operatorOf,
  paid,
  resend,
  reversalCheckMs,
  sendAgain,
  waitedEnough,
} from './sending.ts'
import { subjects } from './subjects.ts'
import { settleTransaction } from './transactions/settle.ts'

/** What asking about a request led to. */
export interface Checked {
  status: string
  /** Whether the operator answered. */
  reached: boolean
}

/**
 * Asks the operator about a request that the caller has claimed, and brings what it is for the answer.
 * Asks before anything expires; while the operator is out of reach nothing changes.
 */
export async function checkRequest(services: Services, request: OpenRequest): Promise<Checked> {
  const { settle, success } = subjects[request.subject]
  if (request.state === 'unsent') return resend(services, request)
  const outcome = await operatorOf(services, request).query(
    request.kind,
    request.handle,
    callContext(services, request, 'background', deadlineIn(limits.operatorQueryDeadlineMs)),
  )
  noteContradiction(services, request, outcome)
  if (request.state === 'settled') return watchSettled(services, request, outcome)
  switch (outcome.kind) {
    case 'settled': {
      const ending = paid(services, request, 'query', outcome.evidence)
      const { status } = await settle(services, request.subjectId, ending)
      if (status !== success) await askNoMore(services, request)
      return { status, reached: true }
    }
    case 'refused':
      return { status: await bringRefusal(services, request, outcome.refusal), reached: true }
    case 'absent':
      if (request.state !== 'accepted')
        return { status: await bringAbsence(services, request, outcome), reached: true }
      services.log.warn({ about: causeOf(request) }, 'the operator lost a request that it had accepted')
      return { status: await keepAsking(services, request, outcome), reached: true }
    case 'reversed': {
      // Paid and taken back before anybody asked: both happened, in this order. They are two commits: until
      // the second, which asks no more, it is due.
      const ending = { ...paid(services, request, 'query', outcome.evidence), watchMs: 0 }
      const { status } = await settle(services, request.subjectId, ending)
      if (status === success) return watchSettled(services, request, outcome)
      await askNoMore(services, request)
      return { status, reached: true }
    }
    case 'pending':
      return { status: await keepAsking(services, request, outcome), reached: true }
    case 'unreachable':
      await askOnceMore(services, request, outcome)
      // The operator answered: the payment is open until an answer names an amount that can be read.
      return { status: request.status, reached: outcome.cause === 'unreadable_amount' }
  }
}

/** Nothing was learnt: also a callback about what is over waits until the operator can be asked. */
async function askOnceMore(
  services: Services,
  request: OpenRequest,
  { cause, retryAfterMs }: Extract<QueryOutcome, { kind: 'unreachable' }>,
): Promise<void> {
  const alarmed = alarmWhereOwed(services, request, cause)
  const pause = alarmed ? regularMs(services, request, 'absent') : nextDoubtCheckMs(request.checkCount)
  await noteRequest(services.batches, {
    id: request.id,
    attempt: request.attempt,
    state: null,
    handle: {},
    nextCheckMs: Math.max(retryAfterMs ?? 0, pause),
    paymentUrl: null,
  })
}

/**
 * Calls somebody, each time it is asked, about a disbursement that its operator gives no account of for
 * `limits.disbursementAlarmMs`: no question ends that, and its money stays set aside. @returns whether it did
 */
function alarmWhereOwed(services: Services, request: OpenRequest, answered: string): boolean {
  const isOpen = request.kind === 'disburse' && request.status === subjects[request.subject].open
  if (!isOpen || request.ageMs < limits.disbursementAlarmMs) return false
  const line = { about: causeOf(request), provider: request.provider, answered }
  services.log.error(line, 'alarm: an operator gives no account of a disbursement')
  return true
}

/**
 * What was paid may be taken back: only that moves it. Any other answer leaves it as it stands, and is asked
 * for again on a sparse schedule where the operator tells nothing by itself, or told just this.
 */
async function watchSettled(
  services: Services,
  request: OpenRequest,
  outcome: QueryOutcome,
): Promise<Checked> {
  if (outcome.kind === 'reversed') {
    const { reverse } = subjects[request.subject]
    const { moved, status } = await reverse(services, request.subjectId, outcome.evidence)
    if (!moved) await watchRequest(services.database.pool, request.id, null)
    return { status, reached: true }
  }
  const reached = outcome.kind !== 'unreachable'
  if (outcome.kind === 'refused' || outcome.kind === 'absent')
    services.log.error({ about: causeOf(request), outcome }, 'the operator disowns a payment')
  // As of the claim, just before the question: the answer may have taken long to arrive.
  const sincePaidMs = request.sinceSettledMs
  const sinceToldMs = request.claimed === 'reversed' ? request.sinceToldMs : null
  const sinceMs = Math.min(sincePaidMs, sinceToldMs ?? sincePaidMs)
  // Only an answer ends the watch: what was taken back while it was out of reach would be lost.
  const next = reached ? reversalCheckMs(services, request, sinceMs) : nextDoubtCheckMs(request.checkCount)
  await watchRequest(services.database.pool, request.id, next)
  return { status: request.status, reached }
}

/** The operator's answer counts; that its callback said otherwise is worth a look. */
function noteContradiction(services: Services, request: OpenRequest, outcome: QueryOutcome): void {
  const { claimed } = request
  const isFinal = outcome.kind === 'settled' || outcome.kind === 'refused'
  if (claimed === null || claimed === 'pending' || !isFinal || claimed === outcome.kind) return
  const about = causeOf(request)
  services.log.warn({ about, claimed, answered: outcome.kind }, 'a callback contradicts its operator')
}

/** The operator has no record, and no answer ever said that it had one. */
async function bringAbsence(
  services: Services,
  request: OpenRequest,
  absent: Extract<QueryOutcome, { kind: 'absent' }>,
): Promise<string> {
  // Its last send was turned away, and nothing is known of any other: it never left.
  if (request.turnedAway && waitedEnough(request)) {
    return (await giveUp(services, request)) ?? keepAsking(services, request, absent)
  }
  const operator = operatorOf(services, request)
  const young = request.ageMs < subjects[request.subject].resendAbsentForMs
  if (young && operator.capabilities.createIsIdempotent) {
    const sent = await sendAgain(services, request)
    if (sent) return sent.status
  }
  return keepAsking(services, request, absent)
}

async function bringRefusal(services: Services, request: OpenRequest, refusal: Refusal): Promise<string> {
  const { states, settle } = subjects[request.subject]
  if (states.canMove(request.status, 'failed')) {
    const failed = { status: 'failed', source: 'query', refusal } as const
    return (await settle(services, request.subjectId, failed)).status
  }
  await askNoMore(services, request)
  return request.status
}

/** It was over already, and now nothing more can come. */
function askNoMore(services: Services, request: OpenRequest): Promise<void> {
  return noteRequest(services.batches, {
    id: request.id,
    attempt: request.attempt,
    state: 'accepted',
    handle: {},
    nextCheckMs: null,
    paymentUrl: null,
  })
}

/** Not decided yet: expires when its time is over (it was asked just now), else is asked again later. */
async function keepAsking(
  services: Services,
  request: OpenRequest,
  outcome: Extract<QueryOutcome, { kind: 'pending' | 'absent' }>,
): Promise<string> {
  const left = leftMs(request)
  if (left <= 0 && subjects[request.subject].states.canMove(request.status, 'expired')) {
    const expired = { status: 'expired', source: 'service' } as const
    return (await settleTransaction(services, request.subjectId, expired)).status
  }
  if (outcome.kind === 'absent') alarmWhereOwed(services, request, outcome.kind)
  const regular = regularMs(services, request, outcome.kind)
  const age = request.ageMs
  // What may have to be sent again is asked about soon: once at least between the end of its fence and the
  // moment when the customer is gone.
  const soon =
    age < limits.resendForMs
      ? Math.min(nextDoubtCheckMs(request.checkCount), (limits.resendForMs - limits.operatorFenceMs) / 2)
      : regular
  // What never ends has no end to keep the last question for.
  const before = request.leftMs === null ? undefined : request.handle.pollsLeft
  const pollsLeft = before === undefined ? undefined : Math.max(0, before - 1)
  const next =
    outcome.kind === 'pending'
      ? politeCheckMs(regular, { ...outcome, pollsLeft }, services.clock.now(), left)
      : Math.min(soon, regular, left)
  const ended = request.state === 'refused' || request.state === 'closed'
  const gone = (ended && outcome.kind === 'absent') || request.sinceOverMs > limits.lateChecksForMs
  await noteRequest(services.batches, {
    id: request.id,
    attempt: request.attempt,
    state: outcome.kind === 'pending' ? 'accepted' : 'doubt',
    handle: { pollsLeft },
    nextCheckMs: gone ? null : left <= 0 ? limits.lateCheckMs : next,
    paymentUrl: null,
  })
  return request.status
}

/** The pause before the next question, as the schedule has it. */
function regularMs(services: Services, request: OpenRequest, heard: 'pending' | 'absent'): number {
  const notify = callsBack(operatorOf(services, request), request.kind) ? 'callback' : 'polling'
  const age = request.ageMs
  return request.kind === 'collect' || heard === 'absent'
    ? nextCheckMs(notify, age)
    : nextDisburseCheckMs(notify, age, request.sinceSentMs ?? 0)
}

import type { Services } from '../context.ts'
import { exchangeRecorder } from '../operators/exchanges.ts'
import { failureReasons } from '../operators/failure-reasons.ts'
import type { CallContext, Evidence, InitiateOutcome, QueryOutcome, Refusal } from '../operators/operator.ts'
import {
  nextCheckMs,
  nextDoubtCheckMs,
  nextReversalCheckMs,
  politeCheckMs,
} from '../operators/poll-schedule.ts'
import type { Operator } from '../operators/registry.ts'
import {
  claimSend,
  noteRequest,
  type OpenRequest,
  type RequestNote,
  watchRequest,
} from '../operators/requests.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import { reverseTransaction } from './transactions/reverse.ts'
import { type Outcome, settleTransaction } from './transactions/settle.ts'
import { type TransactionStatus, transactionStates } from './transactions/states.ts'

/** What sending a request led to. */
export interface Sent {
  status: TransactionStatus
  paymentUrl: string | null
  /** Whether the operator answered, or may have. */
  reached: boolean
  /** With the words that a merchant is told. */
  refusal: (Refusal & { words: string }) | null
}

/**
 * Sends a request to its operator and brings its transaction what the answer means. The intent is on record
 * before; an answer that does not come, or that nobody understands, is never a failure: the request is asked
 * about until it is known.
 * @param deadline from before the right to send was taken: nothing leaves after it
 */
export async function sendRequest(
  services: Services,
  request: OpenRequest,
  lane: CallContext['lane'],
  deadline: Date,
): Promise<Sent> {
  const operator = operatorOf(services, request)
  const outcome = await operator.collect(
    {
      handle: request.handle,
      amount: request.amount,
      payer: request.phone,
      description: request.request.description,
      successUrl: request.request.return_url ?? services.addresses.publicUrl,
      cancelUrl: request.request.cancel_url ?? services.addresses.publicUrl,
      callbackUrl: operator.callbackUrl(request.id),
      // What never left is sent for the first time: a refusal of it is one.
      attempt: nothingLeft(request) ? 1 : request.attempt,
    },
    callContext(services, request, lane, deadline),
  )
  return bringAnswer(services, operator, request, outcome)
}

async function bringAnswer(
  services: Services,
  operator: Operator,
  request: OpenRequest,
  outcome: InitiateOutcome,
): Promise<Sent> {
  const id = request.transactionId
  const open = { status: 'pending', paymentUrl: null, reached: true, refusal: null } as const
  const note = (state: RequestNote['state'], more: Partial<RequestNote>) =>
    noteRequest(services.batches, {
      id: request.id,
      attempt: request.attempt,
      state,
      handle: {},
      nextCheckMs: 0,
      paymentUrl: null,
      ...more,
    })
  switch (outcome.kind) {
    case 'accepted': {
      const paymentUrl = outcome.action.type === 'redirect' ? outcome.action.url : null
      const pollsLeft = outcome.pollLimit
      const left = leftMs(services, request)
      const regular = outcome.pollAfterMs ?? nextCheckMs(outcome.notify, 0)
      const next = politeCheckMs(regular, { ...outcome, pollsLeft }, services.clock.now(), left)
      await note('accepted', {
        handle: { ...outcome.handle, pollsLeft },
        paymentUrl,
        // A duplicate was executed before: only a question tells what became of it.
        nextCheckMs: outcome.duplicate ? 0 : next,
      })
      return { ...open, paymentUrl }
    }
    case 'settled': {
      const { status } = await settleTransaction(
        services,
        id,
        paid(services, request, 'initiate', outcome.evidence),
      )
      return { ...open, status }
    }
    case 'refused': {
      const { refusal } = outcome
      const { status } = await settleTransaction(services, id, {
        status: 'failed',
        source: 'initiate',
        refusal,
      })
      return { ...open, status, refusal: { ...refusal, words: failureReasons[refusal.reason].messageEn } }
    }
    case 'not_sent': {
      // Proof that nothing left holds for this attempt; an earlier one may have.
      const pause = Math.min(outcome.retryAfterMs ?? nextDoubtCheckMs(request.checkCount), limits.resendForMs)
      await note(nothingLeft(request) ? 'unsent' : 'doubt', { nextCheckMs: pause })
      return { ...open, reached: false }
    }
    case 'unknown': {
      services.log.info(
        { transactionId: id, provider: operator.provider, cause: outcome.cause },
        'outcome unknown',
      )
      await note('doubt', { handle: outcome.handle, nextCheckMs: nextDoubtCheckMs(0) })
      return open
    }
  }
}

/** What asking about a request led to. */
export interface Checked {
  status: TransactionStatus
  /** Whether the operator answered. */
  reached: boolean
}

/**
 * Asks the operator about a request that the caller has claimed, and brings its transaction the answer. Asks
 * before anything expires; while the operator is out of reach nothing changes.
 */
export async function checkRequest(services: Services, request: OpenRequest): Promise<Checked> {
  const standing = standingOf(request)
  if (request.state === 'unsent') return resend(services, request)
  const askedAt = services.clock.now()
  const outcome = await operatorOf(services, request).query(
    request.kind,
    request.handle,
    callContext(services, request, 'background', deadlineIn(limits.operatorQueryDeadlineMs)),
  )
  noteContradiction(services, request, outcome)
  if (request.state === 'settled') return watchSettled(services, request, outcome, askedAt)
  switch (outcome.kind) {
    case 'settled': {
      const { evidence } = outcome
      if (evidence.amount !== request.amount) {
        services.log.error(
          { transactionId: request.transactionId, asked: request.amount, evidence },
          'another amount was paid',
        )
      }
      const settled = paid(services, request, 'query', evidence)
      return {
        status: (await settleTransaction(services, request.transactionId, settled)).status,
        reached: true,
      }
    }
    case 'refused':
      return { status: await bringRefusal(services, request, outcome.refusal), reached: true }
    case 'absent':
      if (request.state !== 'accepted')
        return { status: await bringAbsence(services, request, outcome), reached: true }
      services.log.warn(
        { transactionId: request.transactionId },
        'the operator lost a request that it had accepted',
      )
      return { status: await keepAsking(services, request, outcome), reached: true }
    case 'reversed': {
      // Paid and taken back before anybody asked: both happened, in this order.
      await settleTransaction(
        services,
        request.transactionId,
        paid(services, request, 'query', outcome.evidence),
      )
      return watchSettled(services, request, outcome, askedAt)
    }
    case 'pending':
      return { status: await keepAsking(services, request, outcome), reached: true }
    case 'unreachable':
      await noteRequest(services.batches, {
        id: request.id,
        attempt: request.attempt,
        // Nothing was learnt: also a callback about what is over waits until the operator can be asked.
        state: null,
        handle: {},
        nextCheckMs: Math.max(outcome.retryAfterMs ?? 0, nextDoubtCheckMs(request.checkCount)),
        paymentUrl: null,
      })
      return { status: standing, reached: false }
  }
}

/**
 * What was paid may be taken back: only that moves it. Any other answer leaves it as it stands, and is asked
 * for again on a sparse schedule where the operator tells nothing by itself.
 * @param askedAt what the answer tells of, however long it took to be noted
 */
async function watchSettled(
  services: Services,
  request: OpenRequest,
  outcome: QueryOutcome,
  askedAt: Date,
): Promise<Checked> {
  if (outcome.kind === 'reversed') {
    const { moved, status } = await reverseTransaction(services, request.transactionId, outcome.evidence)
    if (!moved) await watchRequest(services.database.pool, request.id, null)
    return { status, reached: true }
  }
  const reached = outcome.kind !== 'unreachable'
  if (outcome.kind === 'refused' || outcome.kind === 'absent')
    services.log.error({ transactionId: request.transactionId, outcome }, 'the operator disowns a payment')
  const sincePaidMs = askedAt.getTime() - (request.settledAt ?? request.createdAt).getTime()
  const next = reached
    ? nextReversalCheckMs(operatorOf(services, request).capabilities.callbacks, sincePaidMs)
    : sincePaidMs > limits.lateChecksForMs
      ? null
      : nextDoubtCheckMs(request.checkCount)
  await watchRequest(services.database.pool, request.id, next)
  return { status: standingOf(request), reached }
}

function paid(
  services: Services,
  request: OpenRequest,
  source: 'initiate' | 'query',
  evidence: Evidence,
): Outcome {
  const { callbacks } = operatorOf(services, request).capabilities
  return { status: 'success', source, evidence, watchMs: nextReversalCheckMs(callbacks, 0) }
}

/** The operator's answer counts; that its callback said otherwise is worth a look. */
function noteContradiction(services: Services, request: OpenRequest, outcome: QueryOutcome): void {
  const { claimed, transactionId } = request
  const isFinal = outcome.kind === 'settled' || outcome.kind === 'refused'
  if (claimed === null || claimed === 'pending' || !isFinal || claimed === outcome.kind) return
  services.log.warn({ transactionId, claimed, answered: outcome.kind }, 'a callback contradicts its operator')
}

/** The operator has no record, and no answer ever said that it had one. */
async function bringAbsence(
  services: Services,
  request: OpenRequest,
  absent: Extract<QueryOutcome, { kind: 'absent' }>,
): Promise<TransactionStatus> {
  const operator = operatorOf(services, request)
  const young = ageMs(services, request) < limits.resendForMs
  if (young && operator.capabilities.createIsIdempotent) {
    const sent = await sendAgain(services, request)
    if (sent) return sent.status
  }
  return keepAsking(services, request, absent)
}

/**
 * A prompt that provably never left: sent for a minute, then the customer is gone and the payment failed.
 * Also giving up takes the right to send: whoever lost it knows nothing any more.
 */
async function resend(services: Services, request: OpenRequest): Promise<Checked> {
  const isGone = ageMs(services, request) >= limits.resendForMs
  if (!isGone) return (await sendAgain(services, request)) ?? { status: standingOf(request), reached: false }
  const attempt = await claimTurn(services, request)
  if (attempt === null) return { status: standingOf(request), reached: false }
  const refusal = {
    reason: 'OPERATOR_UNAVAILABLE',
    code: 'not_sent',
    message: 'The operator could not be reached.',
  } as const
  const failed = { status: 'failed', source: 'service', refusal } as const
  const { status } = await settleTransaction(services, request.transactionId, failed)
  return { status, reached: false }
}

function standingOf(request: OpenRequest): TransactionStatus {
  return request.status as TransactionStatus
}

async function bringRefusal(
  services: Services,
  request: OpenRequest,
  refusal: Refusal,
): Promise<TransactionStatus> {
  const standing = standingOf(request)
  if (transactionStates.canMove(standing, 'failed')) {
    const failed = { status: 'failed', source: 'query', refusal } as const
    return (await settleTransaction(services, request.transactionId, failed)).status
  }
  // It was over already, and now nothing more can come.
  await noteRequest(services.batches, {
    id: request.id,
    attempt: request.attempt,
    state: 'accepted',
    handle: {},
    nextCheckMs: null,
    paymentUrl: null,
  })
  return standing
}

/** Not decided yet: expires when its time is over (it was asked just now), else is asked again later. */
async function keepAsking(
  services: Services,
  request: OpenRequest,
  outcome: Extract<QueryOutcome, { kind: 'pending' | 'absent' }>,
): Promise<TransactionStatus> {
  const standing = standingOf(request)
  const left = leftMs(services, request)
  if (transactionStates.canMove(standing, 'expired') && left <= 0) {
    return (
      await settleTransaction(services, request.transactionId, { status: 'expired', source: 'service' })
    ).status
  }
  const notify = operatorOf(services, request).capabilities.callbacks === 'none' ? 'polling' : 'callback'
  const age = ageMs(services, request)
  const regular = nextCheckMs(notify, age)
  // What may have to be sent again is asked about soon: once at least between the end of its fence and the
  // moment when the customer is gone.
  const soon =
    age < limits.resendForMs
      ? Math.min(nextDoubtCheckMs(request.checkCount), (limits.resendForMs - limits.operatorFenceMs) / 2)
      : regular
  const { pollsLeft: before } = request.handle
  const pollsLeft = before === undefined ? undefined : Math.max(0, before - 1)
  const next =
    outcome.kind === 'pending'
      ? politeCheckMs(regular, { ...outcome, pollsLeft }, services.clock.now(), left)
      : Math.min(soon, regular, left)
  const ended = request.state === 'refused' || request.state === 'closed'
  const gone = (ended && outcome.kind === 'absent') || -left > limits.lateChecksForMs
  await noteRequest(services.batches, {
    id: request.id,
    attempt: request.attempt,
    state: outcome.kind === 'pending' ? 'accepted' : 'doubt',
    handle: { pollsLeft },
    nextCheckMs: gone ? null : left <= 0 ? limits.lateCheckMs : next,
    paymentUrl: null,
  })
  return standing
}

function ageMs(services: Services, request: OpenRequest): number {
  return services.clock.now().getTime() - request.createdAt.getTime()
}

/** Until the transaction ends unpaid. */
function leftMs(services: Services, request: OpenRequest): number {
  return request.expiresAt.getTime() - services.clock.now().getTime()
}

/** Provably no send of this request reached its operator before the present one. */
function nothingLeft(request: OpenRequest): boolean {
  return request.attempt === 1 || request.state === 'unsent'
}

function operatorOf(services: Services, request: OpenRequest): Operator {
  const operator = services.operators.find(request.provider)
  invariant(operator, `${request.provider} has open requests: it must stay configured`)
  return operator
}

/** Sends a request once more. Null where somebody else may, or an earlier send may still arrive. */
async function sendAgain(services: Services, request: OpenRequest): Promise<Sent | null> {
  // Counted from before the claim, so that a process that stalls in between cannot send beyond its fence.
  const deadline = deadlineIn(limits.collectDeadlineMs)
  const attempt = await claimTurn(services, request)
  return attempt === null ? null : sendRequest(services, { ...request, attempt }, 'background', deadline)
}

function claimTurn(services: Services, { id, attempt, claimedAt }: OpenRequest): Promise<number | null> {
  return claimSend(services.database.pool, id, attempt, claimedAt)
}

/** By the machine's own clock: the sandbox may move its time, never a timeout. */
export function deadlineIn(ms: number): Date {
  return new Date(Date.now() + ms)
}

function callContext(
  services: Services,
  request: OpenRequest,
  lane: CallContext['lane'],
  deadline: Date,
): CallContext {
  return {
    deadline,
    lane,
    record: exchangeRecorder(services.batches, services.log, request),
  }
}

import { type Services, shareFlight } from '../context.ts'
import { exchangeRecorder } from '../operators/exchanges.ts'
import { failureReasons } from '../operators/failure-reasons.ts'
import type { CallContext, Evidence, InitiateOutcome, NotSent, Refusal } from '../operators/operator.ts'
import {
  nextCheckMs,
  nextDisburseCheckMs,
  nextDoubtCheckMs,
  nextFloatCheckMs,
  nextReversalCheckMs,
  politeCheckMs,
} from '../operators/poll-schedule.ts'
import type { Operator } from '../operators/registry.ts'
import { causeOf, claimSend, noteRequest, type OpenRequest, type RequestNote } from '../operators/requests.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import type { Ending } from './outcome.ts'
import { subjects } from './subjects.ts'
import { receiptUrl } from './transactions/receipt.ts'

/** What sending a request led to. */
export interface Sent {
  /** Of what it is for, a transaction or a payout. */
  status: string
  paymentUrl: string | null
  /** Whether the operator answered, or may have. */
  reached: boolean
  /** With the words that a merchant is told. */
  refusal: (Refusal & { words: string }) | null
}

/**
 * Sends a request to its operator and brings what it is for what the answer means. The intent is on record
 * before; an answer that does not come, or that nobody understands, is never a failure: the request is asked
 * about until it is known.
 * @param deadline from before the right to send was taken: nothing leaves after it
 * @param onAnswered called when the operator has answered or will not, before that is noted
 */
export async function sendRequest(
  services: Services,
  request: OpenRequest,
  lane: CallContext['lane'],
  deadline: Date,
  onAnswered?: () => void,
): Promise<Sent> {
  const operator = operatorOf(services, request)
  const sending = start(services, operator, request, callContext(services, request, lane, deadline))
  const outcome = await (onAnswered ? sending.finally(onAnswered) : sending)
  return bringAnswer(services, operator, request, outcome)
}

/** A disbursement that was begun just now, as the statement that began it tells of it. */
export interface BegunRow {
  requestId: bigint
  merchantId: number
  amount: bigint
  phone: string
  correlationId: string
}

/** The times of a request that the statement before recorded and that has no end of its own. */
export const justRecorded = { ageMs: 0, leftMs: null, sinceOverMs: 0, sinceSettledMs: 0 }

/** The request of what was begun just now, to be sent for the first time. */
export function begunRequest(
  row: BegunRow,
  about: Pick<OpenRequest, 'subject' | 'subjectId' | 'provider' | 'request'>,
): OpenRequest {
  const { requestId: id, merchantId, amount, phone, correlationId } = row
  return {
    ...about,
    id,
    merchantId,
    kind: 'disburse',
    amount,
    phone,
    handle: { correlationId, clientRef: correlationId },
    state: 'sending',
    attempt: 1,
    checkCount: 0,
    ...justRecorded,
    status: subjects[about.subject].open,
    claimed: null,
  }
}

/** Sends what was begun just now. Never throws: an answer that could not be noted is asked for. */
export async function sendBegun(
  services: Services,
  request: OpenRequest,
  deadline: Date,
  onAnswered?: () => void,
): Promise<void> {
  try {
    await shareFlight(services, `send:${request.id}`, () =>
      sendRequest(services, request, 'background', deadline, onAnswered),
    )
  } catch (error) {
    const about = causeOf(request)
    services.log.error({ err: error, about }, 'an answer of an operator was not noted')
  }
}

function start(
  services: Services,
  operator: Operator,
  request: OpenRequest,
  ctx: CallContext,
): Promise<InitiateOutcome> {
  const { handle, amount, phone } = request
  const { description, return_url, cancel_url } = request.request
  const initiation = {
    handle,
    amount,
    description,
    callbackUrl: operator.callbackUrl(request.id),
    // What never left is sent for the first time: a refusal of it is one.
    attempt: nothingLeft(request) ? 1 : request.attempt,
  }
  if (request.kind === 'disburse') return operator.disburse({ ...initiation, payee: phone }, ctx)
  // Who is led nowhere else comes back to where the receipt will be.
  const receipt = receiptUrl(services, request.subjectId)
  const pages = { successUrl: return_url ?? receipt, cancelUrl: cancel_url ?? receipt }
  const searchesFirst = services.restores.mayHaveSent()
  return operator.collect({ ...initiation, ...pages, searchesFirst, payer: phone }, ctx)
}

async function bringAnswer(
  services: Services,
  operator: Operator,
  request: OpenRequest,
  outcome: InitiateOutcome,
): Promise<Sent> {
  const open = openOf(request)
  switch (outcome.kind) {
    case 'accepted': {
      const paymentUrl = outcome.action.type === 'redirect' ? outcome.action.url : null
      const pollsLeft = outcome.pollLimit
      const { notify } = outcome
      const soon = request.kind === 'collect' ? nextCheckMs(notify, 0) : nextDisburseCheckMs(notify, 0, 0)
      const left = leftMs(request)
      const asked = { ...outcome, pollsLeft: request.leftMs === null ? undefined : pollsLeft }
      const next = politeCheckMs(outcome.pollAfterMs ?? soon, asked, services.clock.now(), left)
      await note(services, request, 'accepted', {
        handle: { ...outcome.handle, pollsLeft },
        paymentUrl,
        // A duplicate was executed before: only a question tells what became of it.
        nextCheckMs: outcome.duplicate ? 0 : next,
      })
      return { ...open, paymentUrl }
    }
    case 'settled': {
      const ending = paid(services, request, 'initiate', outcome.evidence)
      const { status } = await subjects[request.subject].settle(services, request.subjectId, ending)
      return { ...open, status }
    }
    case 'refused':
      return bringRefusal(services, request, outcome.refusal)
    case 'not_sent':
      return bringNotSent(services, request, outcome)
    case 'unknown': {
      services.log.info(
        { about: causeOf(request), provider: operator.provider, cause: outcome.cause },
        'outcome unknown',
      )
      await note(services, request, 'doubt', { handle: outcome.handle, nextCheckMs: nextDoubtCheckMs(0) })
      return open
    }
  }
}

async function bringRefusal(services: Services, request: OpenRequest, refusal: Refusal): Promise<Sent> {
  const failed = { status: 'failed', source: 'initiate', refusal, attempt: request.attempt } as const
  const { status } = await subjects[request.subject].settle(services, request.subjectId, failed)
  // Sent again meanwhile: the operator may have that one, and is asked.
  if (status !== 'failed') return { ...openOf(request), status }
  return {
    ...openOf(request),
    status,
    refusal: { ...refusal, words: failureReasons[refusal.reason].messageEn },
  }
}

/**
 * Proof that nothing left holds for this attempt; an earlier one may have. What an empty float turned away
 * after the operator had no record of it never left at all.
 */
async function bringNotSent(services: Services, request: OpenRequest, outcome: NotSent): Promise<Sent> {
  const { retryAfterMs, refusal } = outcome
  const { waitsForFloat } = subjects[request.subject]
  const open = openOf(request)
  const pause = Math.min(retryAfterMs ?? nextDoubtCheckMs(request.checkCount), limits.resendForMs)
  if (refusal && !request.turnedAway) {
    const line = { about: causeOf(request), provider: request.provider, refusal }
    services.log.error(line, 'alarm: our float at an operator is empty')
  }
  if (refusal && !waitsForFloat) return bringRefusal(services, request, refusal)
  if (refusal) {
    const handle = { turnedAway: refusal.reason }
    const state = nothingLeft(request) ? 'unsent' : 'doubt'
    await note(services, request, state, { handle, nextCheckMs: nextFloatCheckMs(request.checkCount) })
    return open
  }
  if (!nothingLeft(request)) {
    await note(services, request, 'doubt', { nextCheckMs: pause })
  } else {
    // It is given up on time.
    const left = Math.max(0, unsentForMs(request) - request.ageMs)
    await note(services, request, 'unsent', { nextCheckMs: Math.min(pause, left) })
  }
  return { ...open, reached: false }
}

/** What a caller is told while nothing is decided. */
function openOf(request: OpenRequest): Sent {
  return { status: subjects[request.subject].open, paymentUrl: null, reached: true, refusal: null }
}

function note(
  services: Services,
  request: OpenRequest,
  state: RequestNote['state'],
  more: Partial<RequestNote> & Pick<RequestNote, 'nextCheckMs'>,
): Promise<void> {
  const { id, attempt } = request
  return noteRequest(services.batches, { id, attempt, state, handle: {}, paymentUrl: null, ...more })
}

/** Sends a request once more. Null where somebody else may, or an earlier send may still arrive. */
export async function sendAgain(services: Services, request: OpenRequest): Promise<Sent | null> {
  // Counted from before the claim, so that a process that stalls in between cannot send beyond its fence.
  const deadline = sendDeadline(operatorOf(services, request), request.kind)
  const attempt = await claimTurn(services, request)
  return attempt === null ? null : sendRequest(services, { ...request, attempt }, 'background', deadline)
}

/** What provably never left: sent until nobody waits for it any more, then it failed. */
export async function resend(
  services: Services,
  request: OpenRequest,
): Promise<{ status: string; reached: boolean }> {
  if (!waitedEnough(request)) {
    const sent = await sendAgain(services, request)
    if (sent) return sent
    // Of a batch others may have their turn; theirs comes soon.
    if (request.subject === 'recipient')
      await note(services, request, null, { nextCheckMs: nextDoubtCheckMs(request.checkCount) })
    return { status: request.status, reached: false }
  }
  return { status: (await giveUp(services, request)) ?? request.status, reached: false }
}

/** Whether nobody waits any more for what never left. */
export function waitedEnough(request: OpenRequest): boolean {
  return request.isWithdrawn === true || request.ageMs >= unsentForMs(request)
}

/** What people approved is tried as long as a payout is: they are not asked again for a short outage. */
function unsentForMs({ subject, isApproved }: OpenRequest): number {
  return isApproved ? limits.payoutUnsentForMs : subjects[subject].unsentForMs
}

/**
 * What never left failed. Also giving up takes the right to send: whoever lost it knows nothing any more.
 * @returns the status that stands; null where another has the right, or an earlier send may still arrive
 */
export async function giveUp(services: Services, request: OpenRequest): Promise<string | null> {
  const attempt = await claimTurn(services, request, { givesUp: true })
  if (attempt === null) return null
  const refusal = request.turnedAway
    ? { reason: request.turnedAway, code: 'not_sent' }
    : {
        reason: 'OPERATOR_UNAVAILABLE' as const,
        code: 'not_sent',
        message: 'The operator could not be reached.',
      }
  const failed = { status: 'failed', source: 'service', refusal, attempt } as const
  return (await subjects[request.subject].settle(services, request.subjectId, failed)).status
}

/** The operator paid, or was paid: its word, and when it is asked whether it took that back. */
export function paid(
  services: Services,
  request: OpenRequest,
  source: 'initiate' | 'query',
  evidence: Evidence,
): Ending {
  if (evidence.amount !== request.amount) {
    const line = { about: causeOf(request), asked: request.amount, evidence }
    const words = evidence.amount > request.amount ? saysMore[request.kind] : 'another amount was paid'
    services.log.error(line, words)
  }
  const watchMs = reversalCheckMs(services, request, 0)
  return { status: 'success', source, evidence, watchMs, question: request.checkCount }
}

/** The excess of a collection waits for a person: `npm run admin -- excess list`. */
const saysMore = {
  collect: 'alarm: an operator says that more was paid than asked',
  disburse: 'alarm: an operator paid out too much',
} as const satisfies Record<OpenRequest['kind'], string>

/**
 * Until the operator is asked whether it took back what was paid, as for so long; null asks no more. One that
 * called to say so, and whose books lag behind, calls no second time: it is asked like one that never calls.
 */
export function reversalCheckMs(services: Services, request: OpenRequest, sinceMs: number): number | null {
  const tells = request.claimed !== 'reversed' && callsBack(operatorOf(services, request), request.kind)
  return nextReversalCheckMs(tells, sinceMs)
}

/** Whether the operator tells by itself what becomes of a request. */
export function callsBack({ capabilities }: Operator, kind: OpenRequest['kind']): boolean {
  // Of what is answered at once it keeps no address.
  return capabilities.callbacks !== 'none' && !(kind === 'disburse' && capabilities.disburseIsSynchronous)
}

/** The operator of a request, which stays configured as long as it has any. */
export function operatorOf(services: Services, request: OpenRequest): Operator {
  const operator = services.operators.find(request.provider)
  invariant(operator, `${request.provider} has open requests: it must stay configured`)
  return operator
}

/** Until what it is for ends unpaid; a disbursement never does. */
export function leftMs(request: Pick<OpenRequest, 'leftMs'>): number {
  return request.leftMs ?? Number.POSITIVE_INFINITY
}

/** When the answer to a send must have come. */
export function sendDeadline({ capabilities }: Operator, kind: OpenRequest['kind']): Date {
  if (kind === 'collect') return deadlineIn(limits.collectDeadlineMs)
  return deadlineIn(
    capabilities.disburseIsSynchronous ? limits.disburseSyncDeadlineMs : limits.disburseDeadlineMs,
  )
}

/** By the machine's own clock: the sandbox may move its time, never a timeout. */
export function deadlineIn(ms: number): Date {
  return new Date(Date.now() + ms)
}

/** What a call about a request to its operator takes. */
export function callContext(
  services: Services,
  request: OpenRequest,
  lane: CallContext['lane'],
  deadline: Date,
): CallContext {
  return { deadline, lane, record: exchangeRecorder(services.batches, services.log, request) }
}

/** Provably no send of this request reached its operator before the present one. */
function nothingLeft(request: OpenRequest): boolean {
  return request.attempt === 1 || request.state === 'unsent'
}

function claimTurn(
  services: Services,
  { id, attempt, claimedAt }: OpenRequest,
  options?: Parameters<typeof claimSend>[4],
): Promise<number | null> {
  return claimSend(services.database.pool, id, attempt, claimedAt, options)
}

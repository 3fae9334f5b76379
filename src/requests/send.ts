import { deadlineIn } from '../operators/call-limits.ts'
import { failureReasons } from '../operators/failure-reasons.ts'
import type { CallContext, InitiateOutcome, Refusal } from '../operators/operator.ts'
import type { Operator } from '../operators/registry.ts'
import { singleFlight } from '../shared/single-flight.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import { lookWhenDue } from './check-slots.ts'
import { decideSent, type LogLine, type Step } from './decide.ts'
import type { FinalOutcome } from './outcome.ts'
import { originOf, nothingLeft, type OpenRequest } from './open-request.ts'
import { claimSend, exchangeRecorder, recordRequest, watchRequest } from './store.ts'
import type { RequestServices } from './subjects.ts'
import { unlessTaken } from './taken-reference.ts'

/**
 * The time limit for the first answer to a disbursement if the operator reports the outcome later. Without an
 * answer in this time, the outcome is `unknown`.
 */
export const sendBounds = { disburseDeadlineMs: 10_000 }

/** The result of sending a request. */
export interface SendOutcome {
  /** The status of the request's subject. */
  status: string
  paymentUrl: string | null
  /** True if the operator answered, or may have the request. */
  reached: boolean
  /** The refusal, with the words for the merchant. */
  refusal: (Pick<Refusal, 'reason' | 'code' | 'message'> & { words: string }) | null
}

/**
 * Sends a request to its operator and carries out the decision on the answer (`decide.ts`). The caller has
 * stored the request before. A missing or unreadable answer is never a failure: the service asks until it
 * knows the outcome.
 * @param deadline set before the right to send was taken: nothing leaves after it
 * @param onAnswered called when the send has ended, with or without an answer, before its result is recorded
 */
export async function sendRequest(
  services: RequestServices,
  request: OpenRequest,
  priority: CallContext['priority'],
  deadline: Date,
  onAnswered?: () => void,
): Promise<SendOutcome> {
  const operator = operatorOf(services, request)
  const record = exchangeRecorder(services.sharedStatements, services.log, request)
  const sending = start(services, operator, request, { deadline, priority, record })
  const outcome = await (onAnswered ? sending.finally(onAnswered) : sending)
  const rules = services.subjects[request.subject]
  const { action, reached, log } = decideSent(
    {
      request,
      rules,
      operator: operator.capabilities,
      now: services.clock.now(),
      random: Math.random(),
    },
    outcome,
  )
  logLines(services, request, log)
  const status = (await act(services, request, action)) ?? rules.open
  const paymentUrl = action.do === 'record' ? action.paymentUrl : null
  // Where the request was sent again meanwhile, it is still open: the operator may have the later send.
  const refusal = action.do === 'settle' && status === 'failed' ? refusalOf(action.finalOutcome) : null
  return { status, paymentUrl, reached, refusal }
}

function refusalOf(finalOutcome: FinalOutcome): SendOutcome['refusal'] {
  if (finalOutcome.status !== 'failed') return null
  return { ...finalOutcome.refusal, words: failureReasons[finalOutcome.refusal.reason].messageEn }
}

function start(
  services: RequestServices,
  operator: Operator,
  request: OpenRequest,
  ctx: CallContext,
): Promise<InitiateOutcome> {
  const { handle, amount, phone, subject, subjectId } = request
  const { description, return_url, cancel_url } = request.request
  const initiation = {
    handle,
    amount,
    description,
    callbackUrl: operator.callbackUrl(request.id),
    // If no earlier send can have reached the operator, this one counts as the first: its refusal is final.
    attempt: nothingLeft(request) ? 1 : request.attempt,
  }
  if (request.kind === 'disburse') return operator.disburse({ ...initiation, payee: phone }, ctx)
  const page = services.subjects[subject].pageOf?.(services, subjectId)
  const pages = { successUrl: return_url ?? page, cancelUrl: cancel_url ?? page }
  const searchesFirst = services.restores.mayHaveSent()
  return operator.collect({ ...initiation, ...pages, searchesFirst, payer: phone }, ctx)
}

/**
 * Sends a request that was begun just now. Never throws: if the answer could not be recorded, the service
 * asks for it later.
 */
export async function sendBegun(
  services: RequestServices,
  request: OpenRequest,
  deadline: Date,
  onAnswered?: () => void,
): Promise<void> {
  try {
    await singleFlight(services, `send:${request.id}`, () =>
      sendRequest(services, request, 'background', deadline, onAnswered),
    )
  } catch (error) {
    const about = originOf(request)
    services.log.error(
      { err: error, about },
      'an answer of an operator was not recorded; the service asks again',
    )
  }
}

/**
 * Sends a request once more. Returns null if `claim_send` does not give the right to send, for example
 * because an earlier send may still arrive.
 */
export async function sendAgain(
  services: RequestServices,
  request: OpenRequest,
): Promise<SendOutcome | null> {
  // The deadline counts from before the claim, so that a process that stalls in between cannot send beyond
  // its fence.
  const deadline = sendDeadline(operatorOf(services, request), request.kind)
  const attempt = await claimSend(services.database.pool, request)
  return attempt === null ? null : sendRequest(services, { ...request, attempt }, 'background', deadline)
}

/** Returns the operator of a request. An operator stays configured while it has open requests. */
export function operatorOf(services: RequestServices, request: OpenRequest): Operator {
  const operator = services.operators.find(request.provider)
  invariant(operator, `${request.provider} has open requests: keep its settings`)
  return operator
}

export function sendDeadline({ capabilities }: Operator, kind: OpenRequest['kind']): Date {
  if (kind === 'collect') return deadlineIn(limits.collectDeadlineMs)
  return deadlineIn(
    capabilities.disburseIsSynchronous ? limits.disburseSyncDeadlineMs : sendBounds.disburseDeadlineMs,
  )
}

/**
 * Carries out one decided step.
 * @returns the status of the request's subject; null where the step does not touch the subject
 */
export async function act(
  services: RequestServices,
  request: OpenRequest,
  step: Step,
): Promise<string | null> {
  const { subject, subjectId, id, attempt } = request
  const { settle, expire, reverse, success } = services.subjects[subject]
  switch (step.do) {
    case 'nothing':
      return null
    case 'record': {
      const { state, handle, nextCheckMs, paymentUrl } = step
      await recordRequest(services.sharedStatements, { id, attempt, state, handle, nextCheckMs, paymentUrl })
      if (nextCheckMs !== null) lookWhenDue(services, request.provider, nextCheckMs)
      return null
    }
    case 'watch':
      await watchRequest(services.database.pool, id, step.nextMs)
      return null
    case 'reverse': {
      const reversal = await unlessTaken(services, request, step.evidence, () =>
        reverse(services, subjectId, step.evidence),
      )
      if (!reversal) return null
      // The payment was reversed already, or cannot be reversed: no further question.
      if (!reversal.moved) await watchRequest(services.database.pool, id, null)
      return reversal.status
    }
    case 'expire':
      invariant(expire, `a ${subject} does not expire`)
      return (await expire(services, subjectId, step.expiry)).status
    case 'settle': {
      const { finalOutcome } = step
      const evidence = finalOutcome.status === 'success' ? finalOutcome.evidence : null
      const applied = await unlessTaken(services, request, evidence, () =>
        settle(services, subjectId, finalOutcome),
      )
      if (!applied) return null
      const { status } = applied
      const next = status === success ? step.ifPaid : step.ifNot
      return (next && (await act(services, request, next))) ?? status
    }
  }
}

/** Writes the log lines of a decision, with the origin of the request. */
export function logLines({ log }: RequestServices, request: OpenRequest, lines: readonly LogLine[]): void {
  const about = originOf(request)
  for (const { level, words, facts } of lines) log[level]({ about, ...facts }, words)
}

import { deadlineIn } from '../operators/call-limits.ts'
import { limits } from '../shared/limits.ts'
import { countWaitingQuestion, slotsOf } from './check-slots.ts'
import { type Action, type Decision, decideAsked } from './decide.ts'
import type { OpenRequest } from './open-request.ts'
import { act, operatorOf, sendAgain, logLines } from './send.ts'
import { claimSend, exchangeRecorder } from './store.ts'
import type { RequestServices } from './subjects.ts'

/** The result of asking an operator about a request. */
export interface Checked {
  /** The status of the request's subject (transaction, payout or recipient). */
  status: string
  /** True if the operator answered, or may have the request. */
  reached: boolean
}

/**
 * Asks the operator about a request that the caller has claimed, and carries out the decision on the answer
 * (`decide.ts`). The service asks nothing about a request that provably never left: it sends this request
 * again if it may, or ends it as failed.
 */
export async function checkRequest(services: RequestServices, request: OpenRequest): Promise<Checked> {
  const { kind, handle, phone, state, subject } = request
  const operator = operatorOf(services, request)
  const record = exchangeRecorder(services.sharedStatements, services.log, request)
  const deadline = deadlineIn(limits.operatorQueryDeadlineMs)
  const asked = kind === 'disburse' ? { ...handle, payee: phone } : handle
  const outcome =
    state === 'unsent'
      ? null
      : await operator.query(kind, asked, { deadline, priority: 'background', record })
  const decision = decideAsked(
    {
      request,
      rules: services.subjects[subject],
      operator: operator.capabilities,
      now: services.clock.now(),
      random: Math.random(),
    },
    outcome,
  )
  const isWaiting = outcome?.kind === 'pending' && request.ageMs >= waitingAgeMs
  const spaced = isWaiting ? { ...decision, action: space(services, request, decision.action) } : decision
  const { status, reached } = await carryOut(services, request, spaced)
  return { status: status ?? request.status, reached }
}

/** Choice: a customer who answers mostly does so within a minute. */
const waitingAgeMs = 60_000

/**
 * Delays the next question about a request that is pending for long, so that all such questions together keep
 * their rate. The question at the time when the payment expires is not delayed.
 */
function space(services: RequestServices, request: OpenRequest, action: Action): Action {
  if (action.do !== 'record' || action.nextCheckMs === null) return action
  const usualMs = action.nextCheckMs
  const laterMs = countWaitingQuestion(slotsOf(services, request.provider), performance.now())
  const leftMs = request.leftMs !== null && request.leftMs > 0 ? request.leftMs : Number.POSITIVE_INFINITY
  return { ...action, nextCheckMs: Math.min(usualMs + laterMs, Math.max(usualMs, Math.round(leftMs))) }
}

/**
 * Carries out a decision.
 * @returns `status`: null if the step did not touch the subject of the request
 */
async function carryOut(
  services: RequestServices,
  request: OpenRequest,
  { action, reached, log }: Decision,
): Promise<{ status: string | null; reached: boolean }> {
  logLines(services, request, log)
  if (action.do === 'resend') {
    const sent = await sendAgain(services, request)
    if (!sent) return carryOut(services, request, action.otherwise)
    return { status: sent.status, reached: reached || sent.reached }
  }
  if (action.do === 'give up') {
    // To end an unsent request, the caller needs the right to send it: without the right, the caller may know
    // an old state.
    const attempt = await claimSend(services.database.pool, request, { givesUp: true })
    if (attempt === null) return carryOut(services, request, action.otherwise)
    const { refusal } = action
    const finalOutcome = { status: 'failed', source: 'service', refusal, attempt } as const
    return { status: await act(services, request, { do: 'settle', finalOutcome }), reached }
  }
  return { status: await act(services, request, action), reached }
}

import { type ArgumentsOf, sqlType } from '../database/sql-function.ts'
import type { Evidence, Refusal } from '../operators/operator.ts'
import type { FailureReason } from '../operators/failure-reasons.ts'
import type { Log } from '../telemetry/log.ts'

/** How what an operator was asked for ends, and whose word that is. */
export type FinalOutcome =
  | {
      status: 'success'
      source: 'initiate' | 'query'
      evidence: Evidence
      /** Until the operator is asked whether it took the money back; null where it tells by itself. */
      watchMs: number | null
      /** The question that it answers, as its request counts them: what was asked later is still open. */
      question?: number
    }
  | {
      status: 'failed'
      source: 'initiate' | 'query' | 'service'
      refusal: Pick<Refusal, 'reason' | 'code' | 'message'>
      /** The one send that it tells of: it ends nothing once there is another, or this one was taken. */
      attempt?: number
    }

/** That nobody confirmed it in time. */
export interface Expiry {
  status: 'expired'
  source: 'service'
}

/** How it ends, by anybody's word or by its age. */
export type RequestOutcome = FinalOutcome | Expiry

/** What an outcome tells the functions that settle, as their arguments. */
export const outcomeTypes = {
  source: sqlType<RequestOutcome['source']>('text'),
  amount: 'bigint?',
  operatorReference: 'text?',
  reason: sqlType<FailureReason | null>('text?'),
  message: 'text?',
  evidence: 'jsonb',
  /** The pause before it is asked about reversals. */
  reversalCheckMs: 'bigint?',
  /** The one send that it tells of. */
  attempt: 'smallint?',
} as const

/** What an outcome tells, as `outcomeTypes` has it. */
export function outcomeArguments(outcome: RequestOutcome): ArgumentsOf<typeof outcomeTypes> {
  const success = outcome.status === 'success' ? outcome : null
  const failed = outcome.status === 'failed' ? outcome : null
  return {
    source: outcome.source,
    amount: success?.evidence.amount,
    operatorReference: success?.evidence.operatorRef,
    reason: failed?.refusal.reason,
    message: failed?.refusal.message,
    evidence: evidenceOf(outcome),
    reversalCheckMs: success?.watchMs,
    attempt: failed?.attempt,
  }
}

/** What is kept as proof, as JSON. */
function evidenceOf(outcome: RequestOutcome): object {
  if (outcome.status === 'expired') return { by: outcome.source }
  if (outcome.status === 'failed') return { by: outcome.source, ...outcome.refusal }
  const { question } = outcome
  return { by: outcome.source, question, ...evidenceJson(outcome.evidence) }
}

/** The operator's word, as JSON. */
export function evidenceJson({ settledAt, ...evidence }: Evidence): object {
  const words = { ...evidence, settled_at: settledAt }
  return Object.fromEntries(
    Object.entries(words).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
  )
}

/**
 * Says that what stands is not what an outcome says. Of a disbursement that failed its money was given back,
 * or is spent by now: one that its operator did pay all the same is for a person.
 * @param about the cause, `payout:7`
 */
export function reportOtherOutcome(
  { log }: { log: Log },
  about: string,
  stands: string | null,
  said: RequestOutcome,
  isOwed: boolean,
): void {
  if (isOwed && said.status === 'success') {
    log.error({ about, stands, said }, 'alarm: an operator paid what had failed')
  } else log.warn({ about, stands, said }, 'an outcome contradicts what stands')
}

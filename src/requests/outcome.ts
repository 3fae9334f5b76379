import { type ArgumentsOf, sqlType } from '../database/sql-function.ts'
import type { Evidence, Refusal } from '../operators/operator.ts'
import type { FailureReason } from '../operators/failure-reasons.ts'
import type { Log } from '../telemetry/log.ts'

/** The final outcome of a request to an operator, with its source. */
export type FinalOutcome =
  | {
      status: 'success'
      source: 'initiate' | 'query'
      evidence: Evidence
      /**
       * Time until the operator is asked whether it took the money back; null where the operator reports that
       * itself.
       */
      watchMs: number | null
      /** The number of the question that this outcome answers (`checkCount`): later questions stay open. */
      question?: number
    }
  | {
      status: 'failed'
      source: 'initiate' | 'query' | 'service'
      refusal: Pick<Refusal, 'reason' | 'code' | 'message'>
      /**
       * The send that this outcome is about. The outcome ends nothing if there is a later send, or if this
       * send was accepted.
       */
      attempt?: number
    }

/** The expiry of a collection that its payer did not confirm in time. */
export interface Expiry {
  status: 'expired'
  source: 'service'
}

/** The outcome of a request: final, or expired by its age. */
export type RequestOutcome = FinalOutcome | Expiry

/** The argument types that carry an outcome to the SQL functions that settle. */
export const outcomeTypes = {
  source: sqlType<RequestOutcome['source']>('text'),
  amount: 'bigint?',
  operatorReference: 'text?',
  reason: sqlType<FailureReason | null>('text?'),
  message: 'text?',
  evidence: 'jsonb',
  /** The pause before the operator is asked about reversals. */
  reversalCheckMs: 'bigint?',
  attempt: 'smallint?',
} as const

/** Returns an outcome as arguments, as `outcomeTypes` lists them. */
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

/** Returns the evidence that is stored for an outcome, as JSON. */
function evidenceOf(outcome: RequestOutcome): object {
  if (outcome.status === 'expired') return { by: outcome.source }
  if (outcome.status === 'failed') return { by: outcome.source, ...outcome.refusal }
  const { question } = outcome
  return { by: outcome.source, question, ...evidenceJson(outcome.evidence) }
}

/** Returns the operator's evidence as JSON. */
export function evidenceJson({ settledAt, ...evidence }: Evidence): object {
  const words = { ...evidence, settled_at: settledAt }
  return Object.fromEntries(
    Object.entries(words).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
  )
}

/**
 * Logs that an outcome contradicts the recorded status. The money of a failed disbursement was given back to
 * the merchant and may be spent: where the operator paid it after all, a person must decide.
 * @param about the origin, such as `payout:7`
 */
export function reportOtherOutcome(
  { log }: { log: Log },
  about: string,
  stands: string | null,
  said: RequestOutcome,
  isOwed: boolean,
): void {
  if (isOwed && said.status === 'success') {
    log.error({ about, stands, said }, 'alarm: an operator paid a request that had failed')
  } else log.warn({ about, stands, said }, 'an outcome contradicts the recorded status')
}

import type { Evidence, Refusal } from '../operators/operator.ts'
import type { FailureReason } from '../operators/failure-reasons.ts'
import type { Log } from '../telemetry/log.ts'

/** How what an operator was asked for ends, and whose word that is. */
export type Ending =
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
export type Outcome = Ending | Expiry

/**
 * What outcomes tell the functions that settle, a column each: source, amount, operator's reference, failure
 * reason, its message, evidence as JSON, the pause before it is asked about reversals, and the send that it
 * tells of.
 */
export function outcomeColumns(
  outcomes: readonly Outcome[],
): [
  Outcome['source'][],
  (bigint | null)[],
  (string | null)[],
  (FailureReason | null)[],
  (string | null)[],
  string[],
  (number | null)[],
  (number | null)[],
] {
  return [
    outcomes.map((o) => o.source),
    outcomes.map((o) => (o.status === 'success' ? o.evidence.amount : null)),
    outcomes.map((o) => (o.status === 'success' ? o.evidence.operatorRef : null)),
    outcomes.map((o) => (o.status === 'failed' ? o.refusal.reason : null)),
    outcomes.map((o) => (o.status === 'failed' ? (o.refusal.message ?? null) : null)),
    outcomes.map((o) => JSON.stringify(evidenceOf(o))),
    outcomes.map((o) => (o.status === 'success' ? o.watchMs : null)),
    outcomes.map((o) => (o.status === 'failed' ? (o.attempt ?? null) : null)),
  ]
}

/** What is kept as proof, as JSON. */
function evidenceOf(outcome: Outcome): object {
  if (outcome.status === 'expired') return { by: outcome.source }
  if (outcome.status === 'failed') return { by: outcome.source, ...outcome.refusal }
  const { question } = outcome
  return { by: outcome.source, question, ...proofOf(outcome.evidence) }
}

/** The operator's word, as JSON. */
export function proofOf({ settledAt, ...evidence }: Evidence): object {
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
export function noteOtherOutcome(
  { log }: { log: Log },
  about: string,
  stands: string | null,
  said: Outcome,
  isOwed: boolean,
): void {
  if (isOwed && said.status === 'success') {
    log.error({ about, stands, said }, 'alarm: an operator paid what had failed')
  } else log.warn({ about, stands, said }, 'an outcome contradicts what stands')
}

import type { Pool } from 'pg'
import type { Services } from '../../context.ts'
import { shareStatement } from '../../database/batch.ts'
import type { Evidence, Refusal } from '../../operators/operator.ts'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
import { type TransactionStatus, transactionStates } from './states.ts'

/** How a transaction ends, and whose word that is. */
export type Outcome =
  | {
      status: 'success'
      source: 'initiate' | 'query'
      evidence: Evidence
      /** Until the operator is asked whether it took the money back; null where it tells by itself. */
      watchMs: number | null
    }
  | {
      status: 'failed'
      source: 'initiate' | 'query' | 'service'
      refusal: Pick<Refusal, 'reason' | 'code' | 'message'>
    }
  | { status: 'expired'; source: 'service' }

/** What stands after an outcome was brought. */
export interface Settlement {
  /** Whether this call moved it. */
  moved: boolean
  status: TransactionStatus
  late: boolean
}

/**
 * Brings a transaction its outcome: the one code path that settles, whoever learned it (callback, status
 * check, schedule, first answer). Status, credit, event and the end of the operator request are one commit; a
 * repetition or a move that the lifecycle does not know changes nothing.
 */
export async function settleTransaction(
  services: Services,
  transactionId: bigint,
  outcome: Outcome,
): Promise<Settlement> {
  const settlement = await services.batches.run(settleMany, { transactionId, outcome })
  if (settlement.moved) {
    services.sequencer.nudge()
  } else if (settlement.status !== outcome.status) {
    // Another outcome came first, in the same call; what it left may still become this one.
    if (settlement.tied && transactionStates.canMove(settlement.status, outcome.status)) {
      return settleTransaction(services, transactionId, outcome)
    }
    services.log.warn(
      { transactionId, stands: settlement.status, said: outcome },
      'an outcome contradicts what stands',
    )
  }
  return settlement
}

interface Item {
  transactionId: bigint
  outcome: Outcome
}

/** `tied`: several outcomes for it came in one call, and this was not the first. */
type Answer = Settlement & { tied: boolean }

const settleMany = shareStatement(async (pool: Pool, items: readonly Item[]): Promise<Answer[]> => {
  const first = new Map<bigint, number>()
  for (const [place, item] of items.entries()) {
    if (!first.has(item.transactionId)) first.set(item.transactionId, place)
  }
  const { rows } = await pool.query<Settlement>({
    name: 'settle_many',
    text: `SELECT moved, status, late
      FROM settle_many($1, $2::transaction_status[], $3, $4, $5, $6, $7, $8::jsonb[], $9, $10)`,
    values: [
      items.map((i) => i.transactionId),
      items.map((i) => i.outcome.status),
      items.map((i) => i.outcome.source),
      items.map((i) => (i.outcome.status === 'success' ? i.outcome.evidence.amount : null)),
      items.map((i) => (i.outcome.status === 'success' ? i.outcome.evidence.operatorRef : null)),
      items.map((i) => (i.outcome.status === 'failed' ? i.outcome.refusal.reason : null)),
      items.map((i) => (i.outcome.status === 'failed' ? (i.outcome.refusal.message ?? null) : null)),
      items.map((i) => JSON.stringify(evidenceOf(i.outcome))),
      limits.lateCheckMs,
      items.map((i) => (i.outcome.status === 'success' ? i.outcome.watchMs : null)),
    ],
  })
  invariant(rows.length === items.length, 'every transaction that is settled exists')
  return rows.map((row, place) => ({ ...row, tied: first.get(items[place]?.transactionId ?? -1n) !== place }))
})

/** What is kept as proof, as JSON. */
function evidenceOf(outcome: Outcome): object {
  if (outcome.status === 'expired') return { by: outcome.source }
  if (outcome.status === 'failed') return { by: outcome.source, ...outcome.refusal }
  return { by: outcome.source, ...proofOf(outcome.evidence) }
}

/** The operator's word, as JSON. */
export function proofOf({ settledAt, ...evidence }: Evidence): object {
  const words = { ...evidence, settled_at: settledAt }
  return Object.fromEntries(
    Object.entries(words).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
  )
}

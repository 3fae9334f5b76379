import type { Pool } from 'pg'
import { shareStatement } from '../../database/batch.ts'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
import { noteOtherOutcome, type Outcome, outcomeColumns } from '../../requests/ending.ts'
import type { RequestServices } from '../../requests/subjects.ts'
import { type TransactionStatus, transactionStates } from './states.ts'

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
  services: RequestServices,
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
    noteOtherOutcome(services, `transaction:${transactionId}`, settlement.status, outcome, false)
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
      FROM settle_many($1, $2::transaction_status[], $4, $5, $6, $7, $8, $9::jsonb[], $3, $10, $11)`,
    values: [
      items.map((i) => i.transactionId),
      items.map((i) => i.outcome.status),
      limits.lateCheckMs,
      ...outcomeColumns(items.map((i) => i.outcome)),
    ],
  })
  invariant(rows.length === items.length, 'every transaction that is settled exists')
  return rows.map((row, place) => ({ ...row, tied: first.get(items[place]?.transactionId ?? -1n) !== place }))
})

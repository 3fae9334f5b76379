import type { Pool } from 'pg'
import { shareStatement } from '../../database/batch.ts'
import { type Ending, noteOtherOutcome, outcomeColumns } from '../../requests/ending.ts'
import type { RequestServices } from '../../requests/subjects.ts'
import type { TransactionStatus } from './states.ts'

/** What stands after the outcome of a deposit was brought. */
interface Settlement {
  /** Whether this call moved it. */
  moved: boolean
  status: TransactionStatus
}

/**
 * Brings a deposit or a refund its outcome: the one code path that ends one, whoever learned it. Paid, its
 * money leaves the reservation, at most what was set aside; refused, all of it is free again. Status,
 * movements, event and the end of the operator request are one commit; a repetition changes nothing.
 */
export async function settleDeposit(
  services: RequestServices,
  id: bigint,
  outcome: Ending,
): Promise<Settlement> {
  const settlement = await services.batches.run(settleMany, { id, outcome })
  if (settlement.moved) services.sequencer.nudge()
  else if (settlement.status !== outcome.status)
    noteOtherOutcome(services, `transaction:${id}`, settlement.status, outcome, true)
  return settlement
}

interface Item {
  id: bigint
  outcome: Ending
}

const settleMany = shareStatement(async (pool: Pool, items: readonly Item[]): Promise<Settlement[]> => {
  const { rows } = await pool.query<Settlement>({
    name: 'settle_deposits',
    text: `SELECT moved, status
      FROM settle_deposits($1, $2::transaction_status[], $3, $4, $5, $6, $7, $8::jsonb[], $9, $10)`,
    values: [
      items.map((i) => i.id),
      items.map((i) => i.outcome.status),
      ...outcomeColumns(items.map((i) => i.outcome)),
    ],
  })
  return rows
})

import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { shareStatement } from '../../database/batch.ts'
import { type Ending, noteOtherOutcome, outcomeArguments, outcomeTypes } from '../../requests/ending.ts'
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
  const settlement = await services.batches.run(settling, { id, outcome })
  if (settlement.moved) services.sequencer.nudge()
  else if (settlement.status !== outcome.status)
    noteOtherOutcome(services, `transaction:${id}`, settlement.status, outcome, true)
  return settlement
}

interface Item {
  id: bigint
  outcome: Ending
}

/** Status, movements, event and the end of the operator request, in one commit. */
export const settleDeposits = sqlFunctionOfMany('settle_deposits', {
  each: {
    transactionId: 'bigint',
    toStatus: sqlType<TransactionStatus>('transaction_status'),
    ...outcomeTypes,
  },
  takes: {},
  gives: { place: 'int', moved: 'boolean', status: sqlType<TransactionStatus>('transaction_status') },
})

const settling = shareStatement((pool: Pool, items: readonly Item[]): Promise<Settlement[]> => {
  const outcomes = items.map(({ id, outcome }) => ({
    transactionId: id,
    toStatus: outcome.status,
    ...outcomeArguments(outcome),
  }))
  return settleDeposits(pool, outcomes, {})
})

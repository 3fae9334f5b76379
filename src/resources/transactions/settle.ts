import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { shareStatement } from '../../database/shared-statements.ts'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
import {
  reportOtherOutcome,
  type RequestOutcome,
  outcomeArguments,
  outcomeTypes,
} from '../../requests/outcome.ts'
import type { RequestServices } from '../../requests/subjects.ts'
import { type TransactionStatus, transactionStates } from './states.ts'

/** The state of a transaction after an outcome was applied. */
export interface Settlement {
  /** Whether this call changed the transaction. */
  moved: boolean
  status: TransactionStatus
  late: boolean
}

/**
 * Applies the outcome of a collection. This is the only code that settles collections, for outcomes from a
 * callback, a status check, a scheduled check or the first answer. Status, credit, event and the end of the
 * operator request are one commit. A repetition, or a change that the lifecycle does not allow, changes
 * nothing.
 */
export async function settleTransaction(
  services: RequestServices,
  transactionId: bigint,
  outcome: RequestOutcome,
): Promise<Settlement> {
  const settlement = await services.sharedStatements.run(settling, { transactionId, outcome })
  if (!settlement.moved && settlement.status !== outcome.status) {
    // Another outcome came first in the same SQL call. The status that it set may still allow this outcome.
    if (settlement.tied && transactionStates.canMove(settlement.status, outcome.status)) {
      return settleTransaction(services, transactionId, outcome)
    }
    reportOtherOutcome(services, `transaction:${transactionId}`, settlement.status, outcome, false)
  }
  return settlement
}

interface Item {
  transactionId: bigint
  outcome: RequestOutcome
}

/** `tied`: true if several outcomes for the transaction came in one call, and this was not the first. */
type Answer = Settlement & { tied: boolean }

/** Writes status, credit, event and the end of the operator request in one commit. */
export const settleMany = sqlFunctionOfMany('settle_many', {
  each: {
    transactionId: 'bigint',
    toStatus: sqlType<RequestOutcome['status']>('transaction_status'),
    ...outcomeTypes,
  },
  takes: { lateCheckMs: 'bigint' },
  gives: {
    ordinal: 'int',
    transactionId: 'bigint',
    moved: 'boolean',
    fromStatus: sqlType<TransactionStatus>('transaction_status'),
    status: sqlType<TransactionStatus>('transaction_status'),
    late: 'boolean',
  },
})

const settling = shareStatement(async (pool: Pool, items: readonly Item[]): Promise<Answer[]> => {
  const first = new Map<bigint, number>()
  for (const [index, item] of items.entries()) {
    if (!first.has(item.transactionId)) first.set(item.transactionId, index)
  }
  const outcomes = items.map(({ transactionId, outcome }) => ({
    transactionId,
    toStatus: outcome.status,
    ...outcomeArguments(outcome),
  }))
  const rows = await settleMany(pool, outcomes, { lateCheckMs: limits.lateCheckMs })
  invariant(rows.length === items.length, 'every transaction that is settled exists')
  return rows.map((row, index) => ({ ...row, tied: first.get(items[index]?.transactionId ?? -1n) !== index }))
})

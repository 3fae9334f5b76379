import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { shareStatement } from '../../database/shared-statements.ts'
import type { Evidence } from '../../operators/operator.ts'
import { invariant } from '../../shared/invariant.ts'
import { evidenceJson } from '../../requests/outcome.ts'
import type { RequestServices } from '../../requests/subjects.ts'
import { type TransactionStatus, transactionStates } from './states.ts'

/** The state of a transaction after the service tried to apply a reversal by the operator. */
interface Reversal {
  /** Whether this call changed the transaction. */
  moved: boolean
  status: TransactionStatus
  /** XOF that the available balance did not cover and the merchant now owes; null where nothing changed. */
  shortfall: bigint | null
  /** XOF that the ledger entries of the reversal take back in all; null where nothing changed. */
  amount: bigint | null
}

/**
 * Takes the credit of a collection back after the operator reported that it reversed the payment. Status,
 * ledger entries, event and the end of the operator request are one commit; a repetition changes nothing.
 *
 * Choice: the merchant's available balance pays as much as it can. The rest is recorded as the merchant's
 * debt (`suspense`), and an error is logged for the platform: no program can get spent money back, and a
 * negative balance would refuse the merchant's next payments.
 */
export async function reverseTransaction(
  services: RequestServices,
  transactionId: bigint,
  evidence: Evidence,
): Promise<Reversal> {
  const reversal = await services.sharedStatements.run(reversing, { transactionId, evidence })
  if (reversal.moved && reversal.shortfall) {
    const { shortfall } = reversal
    services.log.error({ transactionId, shortfall }, 'a merchant owes money after a reversal by the operator')
  }
  if (reversal.moved && reversal.amount !== evidence.amount) {
    const line = { transactionId, paid: reversal.amount, said: evidence.amount }
    services.log.error(line, 'alarm: an operator took back another amount than was paid')
  }
  if (transactionStates.canMove(reversal.status, 'reversed'))
    services.log.warn({ transactionId, stands: reversal.status }, 'a reversal was not applied')
  return reversal
}

interface Item {
  transactionId: bigint
  evidence: Evidence
}

/** Takes the credit of collections back; see reverse_many.sql. */
export const reverseMany = sqlFunctionOfMany('reverse_many', {
  each: { transactionId: 'bigint', source: 'text', evidence: 'jsonb' },
  takes: {},
  gives: {
    ordinal: 'int',
    moved: 'boolean',
    status: sqlType<TransactionStatus>('transaction_status'),
    shortfall: 'bigint?',
    amount: 'bigint?',
  },
})

const reversing = shareStatement(async (pool: Pool, items: readonly Item[]): Promise<Reversal[]> => {
  const reversals = items.map(({ transactionId, evidence }) => ({
    transactionId,
    source: 'query',
    evidence: { by: 'query', reversed: true, ...evidenceJson(evidence) },
  }))
  const rows = await reverseMany(pool, reversals, {})
  invariant(rows.length === items.length, 'every transaction that is reversed exists')
  return rows
})

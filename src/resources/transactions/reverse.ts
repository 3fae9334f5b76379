import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { shareStatement } from '../../database/batch.ts'
import type { Evidence } from '../../operators/operator.ts'
import { invariant } from '../../shared/invariant.ts'
import { evidenceJson } from '../../requests/outcome.ts'
import type { RequestServices } from '../../requests/subjects.ts'
import { type TransactionStatus, transactionStates } from './states.ts'

/** What stands after a reversal was brought. */
interface Reversal {
  /** Whether this call moved it. */
  moved: boolean
  status: TransactionStatus
  /** What the merchant had spent already, and owes now, in XOF; null where nothing moved. */
  shortfall: bigint | null
  /** What the operator took back in all, in XOF, as our books have it; null where nothing moved. */
  amount: bigint | null
}

/**
 * Takes a credited collection back, on the operator's answer that it took it back itself. Status, movement,
 * event and the end of the operator request are one commit; a repetition changes nothing.
 *
 * Choice: the merchant's free balance pays as far as it reaches. The rest is written as the merchant's debt
 * (`suspense`), and somebody is called: money that is spent cannot be fetched by a program, and a balance
 * below zero would refuse what comes next.
 */
export async function reverseTransaction(
  services: RequestServices,
  transactionId: bigint,
  evidence: Evidence,
): Promise<Reversal> {
  const reversal = await services.batches.run(reversing, { transactionId, evidence })
  if (reversal.moved) services.sequencer.notify()
  if (reversal.moved && reversal.shortfall) {
    const { shortfall } = reversal
    services.log.error({ transactionId, shortfall }, 'a merchant owes what an operator took back')
  }
  if (reversal.moved && reversal.amount !== evidence.amount) {
    const line = { transactionId, paid: reversal.amount, said: evidence.amount }
    services.log.error(line, 'alarm: an operator took back another amount than was paid')
  }
  if (transactionStates.canMove(reversal.status, 'reversed'))
    services.log.warn({ transactionId, stands: reversal.status }, 'a reversal moved nothing')
  return reversal
}

interface Item {
  transactionId: bigint
  evidence: Evidence
}

/** Takes credited collections back; see reverse_many.sql. */
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

import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { shareStatement } from '../../database/batch.ts'
import { type Ending, noteOtherOutcome, outcomeArguments, outcomeTypes } from '../../requests/ending.ts'
import type { RequestServices } from '../../requests/subjects.ts'
import type { RecipientStatus } from './states.ts'

/** What recipients led to within this time is one statement, and one event of each batch. */
const recipientsSettlePaceMs = 40

/** What stands after the outcome of a recipient was brought. */
interface Settlement {
  /** Whether this call moved it. */
  moved: boolean
  status: RecipientStatus
}

/**
 * Brings a recipient that was sent its outcome: the one code path that ends one, whoever learned it. Paid,
 * its money leaves what was set aside for the batch; refused, it is free again. Status, movements, the counts
 * of the batch, its event and the end of the operator request are one commit; a repetition changes nothing.
 * The last one ends the batch.
 */
export async function settleRecipient(
  services: RequestServices,
  id: bigint,
  outcome: Ending,
): Promise<Settlement> {
  const settlement = await services.batches.run(settling, { id, outcome })
  if (settlement.moved) services.sequencer.nudge()
  else if (settlement.status !== outcome.status)
    noteOtherOutcome(services, `recipient:${id}`, settlement.status, outcome, true)
  return settlement
}

interface Item {
  id: bigint
  outcome: Ending
}

/** Status, movements, event and the end of the operator request, in one commit. */
export const settleRecipients = sqlFunctionOfMany('settle_recipients', {
  each: { recipientId: 'bigint', toStatus: sqlType<RecipientStatus>('recipient_status'), ...outcomeTypes },
  takes: {},
  gives: { place: 'int', moved: 'boolean', status: sqlType<RecipientStatus>('recipient_status') },
})

/** Nobody waits for a recipient as one waits for a deposit: those that end within a moment end together. */
const settling = shareStatement(
  (pool: Pool, items: readonly Item[]): Promise<Settlement[]> => {
    const outcomes = items.map(({ id, outcome }) => ({
      recipientId: id,
      toStatus: outcome.status,
      ...outcomeArguments(outcome),
    }))
    return settleRecipients(pool, outcomes, {})
  },
  undefined,
  recipientsSettlePaceMs,
)

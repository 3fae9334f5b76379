import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { shareStatement } from '../../database/batch.ts'
import { type Ending, noteOtherOutcome, outcomeArguments, outcomeTypes } from '../../requests/ending.ts'
import type { RequestServices } from '../../requests/subjects.ts'
import type { PayoutStatus } from './states.ts'

/** What payouts led to within this time is one statement. */
const payoutsSettlePaceMs = 10

/** What stands after the outcome of a payout was brought. */
interface Settlement {
  /** Whether this call moved it. */
  moved: boolean
  status: PayoutStatus
}

/** What each outcome makes of a payout. */
const becomes = { success: 'completed', failed: 'failed' } as const satisfies Record<
  Ending['status'],
  PayoutStatus
>

/**
 * Brings a payout that was sent its outcome: the one code path that ends one, whoever learned it. Paid, its
 * money leaves the reservation, at most what was set aside; refused, all of it is free again. Status,
 * movements, event and the end of the operator request are one commit; a repetition changes nothing.
 */
export async function settlePayout(
  services: RequestServices,
  id: bigint,
  outcome: Ending,
): Promise<Settlement> {
  const settlement = await services.batches.run(settling, { id, outcome })
  if (settlement.moved) services.sequencer.nudge()
  else if (settlement.status !== becomes[outcome.status])
    noteOtherOutcome(services, `payout:${id}`, settlement.status, outcome, true)
  return settlement
}

interface Item {
  id: bigint
  outcome: Ending
}

/** Status, movements, event and the end of the operator request, in one commit. */
export const settlePayouts = sqlFunctionOfMany('settle_payouts', {
  each: { payoutId: 'bigint', toStatus: sqlType<PayoutStatus>('payout_status'), ...outcomeTypes },
  takes: {},
  gives: { place: 'int', moved: 'boolean', status: sqlType<PayoutStatus>('payout_status') },
})

/** Nobody waits for a payout as one waits for a deposit: those that end within a moment end together. */
const settling = shareStatement(
  (pool: Pool, items: readonly Item[]): Promise<Settlement[]> => {
    const outcomes = items.map(({ id, outcome }) => ({
      payoutId: id,
      toStatus: becomes[outcome.status],
      ...outcomeArguments(outcome),
    }))
    return settlePayouts(pool, outcomes, {})
  },
  undefined,
  payoutsSettlePaceMs,
)

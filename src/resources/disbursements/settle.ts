import type { Pool } from 'pg'
import { shareStatement } from '../../database/shared-statements.ts'
import type { ArgumentsOf } from '../../database/sql-function.ts'
import {
  type FinalOutcome,
  reportOtherOutcome,
  outcomeArguments,
  type outcomeTypes,
} from '../../requests/outcome.ts'
import type { RequestServices } from '../../requests/subjects.ts'

/** The state of a payment out after an outcome was applied. */
interface Settlement<Status> {
  /** True if this call changed the status. */
  moved: boolean
  status: Status
}

/** One payment out with its outcome: the arguments of the SQL function that settles payments of its kind. */
type Ended<Status> = { id: bigint; toStatus: Status } & ArgumentsOf<typeof outcomeTypes>

type Settle<Status> = (
  services: RequestServices,
  id: bigint,
  outcome: FinalOutcome,
) => Promise<Settlement<Status>>

/**
 * Makes the function that applies an operator's outcome to a payment out. Every outcome, of a call, of a
 * callback or of a check, goes through this function. A paid amount leaves the reserve, at most the amount
 * that was reserved; after a refusal the whole amount is available again. Status, ledger entries, event and
 * the end of the operator request are one commit; a repetition changes nothing.
 * @param kind.origin the kind in the names of the ledger and the logs: `payout` in `payout:7`
 * @param kind.becomes the status that each outcome leads to
 * @param kind.paceMs outcomes that arrive within this time, in ms, share one SQL statement
 */
export function settlesPaymentsOut<Status extends string>(kind: {
  origin: string
  becomes: Readonly<Record<FinalOutcome['status'], Status>>
  paceMs?: number
  settleMany: (pool: Pool, ended: readonly Ended<Status>[]) => Promise<Settlement<Status>[]>
}): Settle<Status> {
  const { origin, becomes, settleMany } = kind
  const settling = shareStatement(
    (pool: Pool, items: readonly { id: bigint; outcome: FinalOutcome }[]) =>
      settleMany(
        pool,
        items.map(({ id, outcome }) => ({
          id,
          toStatus: becomes[outcome.status],
          ...outcomeArguments(outcome),
        })),
      ),
    undefined,
    kind.paceMs,
  )
  return async (services, id, outcome) => {
    const settlement = await services.sharedStatements.run(settling, { id, outcome })
    if (!settlement.moved && settlement.status !== becomes[outcome.status])
      reportOtherOutcome(services, `${origin}:${id}`, settlement.status, outcome, true)
    return settlement
  }
}

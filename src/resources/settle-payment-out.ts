import type { Pool } from 'pg'
import { shareStatement } from '../database/batch.ts'
import type { ArgumentsOf } from '../database/sql-function.ts'
import {
  type FinalOutcome,
  reportOtherOutcome,
  outcomeArguments,
  type outcomeTypes,
} from '../requests/outcome.ts'
import type { RequestServices } from '../requests/subjects.ts'

/** What stands after the outcome of a payment out was brought. */
interface Settlement<Status> {
  /** Whether this call moved it. */
  moved: boolean
  status: Status
}

/** One payment out and its outcome, as the function that settles its kind takes it. */
type Ended<Status> = { id: bigint; toStatus: Status } & ArgumentsOf<typeof outcomeTypes>

type Settle<Status> = (
  services: RequestServices,
  id: bigint,
  outcome: FinalOutcome,
) => Promise<Settlement<Status>>

/**
 * Makes the verb that brings a payment out its outcome: the one code path that ends one, whoever learned it.
 * Paid, its money leaves what was set aside, at most that much; refused, all of it is free again. Status,
 * movements, event and the end of the operator request are one commit; a repetition changes nothing.
 * @param kind.cause what the log calls it: `payout`, of `payout:7`
 * @param kind.becomes the status that each outcome gives it
 * @param kind.paceMs outcomes that come within this time share a statement
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
    const settlement = await services.batches.run(settling, { id, outcome })
    if (settlement.moved) services.sequencer.notify()
    else if (settlement.status !== becomes[outcome.status])
      reportOtherOutcome(services, `${origin}:${id}`, settlement.status, outcome, true)
    return settlement
  }
}

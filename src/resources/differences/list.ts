import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import type { Provider } from '../../shared/providers.ts'
import type { Xof } from '../../shared/money.ts'

/** The reason to read without row-level security. */
export const seesAll = 'an administrator sees all merchants'

/**
 * The decision on a difference. `credited`: the merchant gets it. `returned`: an excess was given back to the
 * payer. `paid`: the operator did pay what it had not confirmed of a payment out.
 */
export type Verdict = 'credited' | 'returned' | 'paid'

/**
 * A difference: the operator confirmed another amount than was asked, more of a collection (an excess), or
 * less of a payment out (a withheld rest). People must still decide who gets it.
 */
export interface Difference {
  id: number
  merchantId: number
  /** The payment, as the ledger names it: `payout:7`. */
  origin: string
  reference: string | null
  paymentMethod: Provider
  /** The requested amount in whole XOF; the difference is the distance to `confirmedAmount`. */
  requestedAmount: Xof
  confirmedAmount: Xof
  createdAt: Date
  /** The verdict that one person has proposed, and that person; null before. */
  proposedState: Verdict | null
  proposedBy: string | null
}

/** The most differences in one list. Choice: more than people work through at a time. */
const listMax = 200

/** Lists the open differences of all merchants, oldest first, at most 200. */
export async function listDifferences(services: Pick<Services, 'database'>): Promise<Difference[]> {
  const { rows } = await asPlatform(services, seesAll).pool.query<Difference>({
    name: 'open_differences',
    text: `SELECT x.id, x.merchant_id AS "merchantId", s.origin,
        coalesce(s.data->>'reference', s.data->>'name') AS reference, s.payment_method AS "paymentMethod",
        x.requested_amount AS "requestedAmount", x.confirmed_amount AS "confirmedAmount",
        x.created_at AS "createdAt", x.proposed_state AS "proposedState", x.proposed_by AS "proposedBy"
      FROM settlement_exception x CROSS JOIN LATERAL difference_subject(x) s
      WHERE x.state = 'open' ORDER BY x.id LIMIT $1`,
    values: [listMax],
  })
  return rows
}

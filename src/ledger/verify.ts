import type { Pool, PoolClient } from 'pg'
import { sqlFunction, sqlType } from '../database/sql-function.ts'

/** The invariants of the books, each with its meaning. */
export const invariants = {
  balances_equal_entries: 'Every balance is the sum of its entries.',
  no_balance_below_zero: 'No balance is below zero.',
  collections_credited_once:
    'Every paid collection has one credit; if it is reversed, an entry or its refunds gave the money back.',
  reservations_end_once: 'Every reservation ends once, at the latest when its payment ends.',
  events_report_every_change: 'Every change of status has one event, and positions have no gap.',
  statuses_agree_with_requests: 'The status of every payment agrees with its request.',
  entries_have_one_origin: 'Every entry has a known origin, and no origin moves money twice in one step.',
  references_are_unique: 'A reference names one transaction, and one payout, of a merchant.',
  debts_are_paid_first: 'A merchant with a debt has no available balance.',
  disbursements_end_once: 'Every deposit and payout moved its money as its status says, once.',
  refunds_stay_within:
    'Refunds never exceed their collection, and a collection that is refunded in full is `reversed`.',
  approvals_cover_what_is_paid:
    'Every payment that needs a person’s approval has one, of exactly that payment.',
  payouts_are_counted: 'The counts of payouts agree with the payouts.',
  batches_are_counted: 'The counts of a batch agree with its recipients.',
  batches_end_once:
    'The reserve of a batch was paid to its recipients or given back, as their statuses say, once.',
  links_are_counted: 'The counts of a payment link agree with its payments and its open attempts.',
} as const
export type Invariant = keyof typeof invariants

/** One problem of the books, with the merchant that it concerns. */
export interface LedgerProblem {
  invariant: Invariant
  merchantId: number
  problem: string
}

/** The columns of `LedgerProblem`, as the proving functions return them. */
export const problemColumns = {
  invariant: sqlType<Invariant>('text'),
  merchantId: 'int',
  problem: 'text',
} as const

const auditLedger = sqlFunction('audit_ledger', { takes: { whole: 'boolean' }, gives: problemColumns })

/**
 * Checks the books against every invariant, in one snapshot, and writes nothing. A check of all rows is for
 * books of a test's size; the books of a service are proven slice by slice (`audit.ts`).
 * @param options.whole checks all rows; otherwise the rows since the proven point (`audit_point`)
 * @returns the problems; an empty list means that the books are right
 */
export async function verifyLedger(
  client: Pool | PoolClient,
  { whole = true }: { whole?: boolean } = {},
): Promise<LedgerProblem[]> {
  // The check may read every row, so the client waits longer than usual; the server's limit still counts.
  return auditLedger(client, { whole }, { timeoutMs: 52_000 })
}

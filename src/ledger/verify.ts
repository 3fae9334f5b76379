import type { Pool, PoolClient } from 'pg'
import { sqlFunction, sqlType } from '../database/sql-function.ts'

/** The invariants of the books, in the order of their proof in `audit_ledger`, each with its meaning. */
export const invariants = {
  balances_equal_entries: 'Every balance is the sum of its entries.',
  no_balance_below_zero: 'No balance is below zero.',
  collections_credited_once:
    'Every paid collection has one credit, as settled, and gave it back if reversed, here or by refunds.',
  reservations_end_once: 'What is reserved ends once, and no later than what it is for.',
  events_report_every_change: 'Every change has one event, and positions have no gap.',
  statuses_agree_with_requests: 'Every status agrees with its request to the operator.',
  entries_have_one_origin: 'Every entry has a known origin, and no origin moves money twice in one step.',
  references_are_unique: 'A reference names one transaction, and one payout, of a merchant.',
  debts_are_paid_first: 'Who owes has nothing available.',
  disbursements_end_once: 'Every deposit and payout moved its money as its status says, once.',
  refunds_stay_within:
    'No collection is given back more than was paid, and what is given back whole says so.',
  approvals_cover_what_is_paid: 'What needs a person’s approval has one, of what it is.',
  payouts_are_counted: 'The payouts that are counted are those that are there.',
  batches_are_counted: 'What a batch counts is what its recipients are.',
  batches_end_once:
    'What a batch set aside, its recipients were paid or it was given back, as they say, once.',
  links_are_counted: 'What a payment link counts is what was paid by it, and what is open.',
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
 * @param options.whole from the first row; otherwise the rows since the auditor's point
 * @returns the problems; an empty list means that the books are right
 */
export async function verifyLedger(
  client: Pool | PoolClient,
  { whole = true }: { whole?: boolean } = {},
): Promise<LedgerProblem[]> {
  // The check may read every row: only the statement's own time limit counts.
  return auditLedger(client, { whole }, { timeoutMs: 52_000 })
}

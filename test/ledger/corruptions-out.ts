import type pg from 'pg'
import type { Invariant } from '../../src/ledger/verify.ts'
import { fundedMerchant, openCollection, settleMany } from '../kit/money.ts'
import {
  beginPayouts,
  cancelPayout,
  openDeposit,
  openPayout,
  reverseDisbursements,
  settleDeposits,
  settlePayouts,
} from '../kit/money-out.ts'

/** A merchant with a disbursement of each fate. */
export interface BooksOut {
  merchantId: number
  /** A collection of 5,000, of which a refund gave 2,000 back and another is to give 3,000. */
  original: bigint
  refund: bigint
  open: bigint
  /** Deposits: paid whole, paid in part, refused, and one that came back. */
  paid: bigint
  less: bigint
  refused: bigint
  returned: bigint
  payouts: Record<
    'pending' | 'scheduled' | 'sent' | 'completed' | 'failed' | 'cancelled' | 'back' | 'asks',
    bigint
  >
}

const later = new Date(Date.now() + 86_400_000)

/** Keeps the books of one merchant, by the verbs alone. */
export async function keepBooksOut(pool: pg.Pool, owner: pg.Pool): Promise<BooksOut> {
  const merchant = await fundedMerchant(pool, 100_000n)
  const { merchantId } = merchant
  const { transactionId: original } = await openCollection(pool, merchant)
  await settleMany(pool, [{ id: original, to: 'success' }])
  const deposit = async (amount: bigint, refundOf: bigint | null = null) =>
    (await openDeposit(pool, merchant, { amount, refundOf })).transactionId
  const [paid, less, refused, returned, refund, open] = [
    await deposit(3_000n),
    await deposit(3_000n),
    await deposit(3_000n),
    await deposit(3_000n),
    await deposit(2_000n, original),
    await deposit(3_000n, original),
  ] as [bigint, bigint, bigint, bigint, bigint, bigint]
  await settleDeposits(pool, [
    { id: paid, to: 'success' },
    { id: less, to: 'success', amount: 1_000n },
    { id: refused, to: 'failed' },
    { id: returned, to: 'success' },
    { id: refund, to: 'success' },
  ])
  const [sent, completed, failed, back] = [
    await openPayout(pool, merchant),
    await openPayout(pool, merchant),
    await openPayout(pool, merchant),
    await openPayout(pool, merchant),
  ] as [bigint, bigint, bigint, bigint]
  await beginPayouts(pool)
  await settlePayouts(pool, [
    { id: completed, to: 'completed' },
    { id: failed, to: 'failed' },
    { id: back, to: 'completed' },
  ])
  await reverseDisbursements(pool, [`transaction:${returned}`, `payout:${back}`])
  const cancelled = await openPayout(pool, merchant)
  await cancelPayout(pool, merchant, cancelled)
  const scheduled = await openPayout(pool, merchant, { scheduledAt: later })
  const pending = await openPayout(pool, merchant, { provider: 'OperatorB' })
  await owner.query('UPDATE merchant SET payouts_require_approval = true WHERE id = $1', [merchantId])
  const asks = await openPayout(pool, merchant)
  await pool.query('SELECT make_missing_deliveries(1000)')
  const payouts = { pending, scheduled, sent, completed, failed, cancelled, back, asks }
  return { merchantId, original, refund, open, paid, less, refused, returned, payouts }
}

type Corruption = readonly [what: string, names: Invariant, corruption: (books: BooksOut) => string[]]

const moved = (origin: string, step: string, change: string) =>
  `UPDATE ledger_entry SET ${change} WHERE origin = '${origin}' AND step = '${step}'`
const unmoved = (origin: string, step: string) =>
  `DELETE FROM ledger_entry WHERE origin = '${origin}' AND step = '${step}'`
const stands = (id: bigint, change: string) => `UPDATE payout SET ${change} WHERE id = ${id}`
const untold = (key: string, id: bigint, type: string) =>
  `DELETE FROM event WHERE data->>'${key}' = '${id}' AND type = '${type}'`

/** Corruptions of rows since the proven point: each is found at once, and by the whole proof. */
export const corruptionsOut: readonly Corruption[] = [
  [
    'available money of a merchant that owes',
    'debts_are_paid_first',
    ({ merchantId }) => [`UPDATE merchant_balance SET receivable = 1 WHERE merchant_id = ${merchantId}`],
  ],
  [
    'a deposit that was paid and never left',
    'disbursements_end_once',
    ({ paid }) => [unmoved(`transaction:${paid}`, 'post')],
  ],
  [
    'a rest that was not withheld',
    'disbursements_end_once',
    ({ less }) => [unmoved(`transaction:${less}`, 'withhold')],
  ],
  [
    'a withheld rest without an exception that people decide',
    'disbursements_end_once',
    ({ less }) => [`DELETE FROM settlement_exception WHERE transaction_id = ${less}`],
  ],
  [
    'less posted than was paid',
    'disbursements_end_once',
    ({ paid }) => [moved(`transaction:${paid}`, 'post', 'amount = 1')],
  ],
  [
    'a payout paid by another operator',
    'disbursements_end_once',
    ({ payouts }) => [moved(`payout:${payouts.completed}`, 'post', `credit = 'clearing_operator_d'`)],
  ],
  [
    'a refused deposit that kept its money',
    'disbursements_end_once',
    ({ refused }) => [unmoved(`transaction:${refused}`, 'void')],
  ],
  [
    'a cancelled payout that kept its money',
    'disbursements_end_once',
    ({ payouts }) => [unmoved(`payout:${payouts.cancelled}`, 'void')],
  ],
  [
    'a payout under way with nothing set aside',
    'disbursements_end_once',
    ({ payouts }) => [unmoved(`payout:${payouts.sent}`, 'reserve')],
  ],
  [
    'a payout that waits with nothing set aside',
    'disbursements_end_once',
    ({ payouts }) => [unmoved(`payout:${payouts.pending}`, 'reserve')],
  ],
  [
    'another amount set aside',
    'disbursements_end_once',
    ({ payouts }) => [moved(`payout:${payouts.asks}`, 'reserve', 'amount = amount + 1')],
  ],
  [
    'a payout that came back for nothing',
    'disbursements_end_once',
    ({ payouts }) => [unmoved(`payout:${payouts.back}`, 'reverse')],
  ],
  [
    'a payout that came back, and does not say so',
    'disbursements_end_once',
    ({ payouts }) => [stands(payouts.back, 'reversed_at = NULL')],
  ],
  [
    'a deposit that came back to another merchant',
    'disbursements_end_once',
    ({ returned }) => [moved(`transaction:${returned}`, 'reverse', 'merchant_id = 0')],
  ],
  [
    'money of a payout that is not there',
    'entries_have_one_origin',
    ({ payouts }) => [moved(`payout:${payouts.pending}`, 'reserve', `origin = 'payout:another'`)],
  ],
  [
    'a refund of more than was paid',
    'refunds_stay_within',
    ({ open }) => [`UPDATE transaction SET amount = amount + 1 WHERE id = ${open}`],
  ],
  [
    'a refund of a payment that failed',
    'refunds_stay_within',
    ({ original }) => [
      `UPDATE transaction SET status = 'failed', settled_amount = NULL WHERE id = ${original}`,
    ],
  ],
  [
    'a payment given back whole that stands',
    'refunds_stay_within',
    ({ original }) => [`UPDATE transaction SET settled_amount = 2000 WHERE id = ${original}`],
  ],
  [
    'a deposit that no event reports',
    'events_report_every_change',
    ({ paid }) => [untold('transaction_id', paid, 'deposit_completed')],
  ],
  [
    'a payout whose beginning no event reports',
    'events_report_every_change',
    ({ payouts }) => [untold('payout_id', payouts.completed, 'payout_processing')],
  ],
  [
    'a payout that came back without an event',
    'events_report_every_change',
    ({ payouts }) => [untold('payout_id', payouts.back, 'payout_reversed')],
  ],
  [
    'a payout that was cancelled without an event',
    'events_report_every_change',
    ({ payouts }) => [untold('payout_id', payouts.cancelled, 'payout_cancelled')],
  ],
  [
    'a payout that two events report',
    'events_report_every_change',
    ({ payouts }) => [
      `SELECT append_events(array_agg((merchant_id, type, data)::new_event), now())
       FROM event WHERE data->>'payout_id' = '${payouts.back}' AND type = 'payout_reversed'`,
    ],
  ],
  [
    'a payout that an event reports to another merchant',
    'events_report_every_change',
    ({ payouts }) => [`UPDATE event SET merchant_id = 0 WHERE data->>'payout_id' = '${payouts.sent}'`],
  ],
  [
    'a payout that the service never asks about',
    'statuses_agree_with_requests',
    ({ payouts }) => [`UPDATE operator_request SET next_check_at = NULL WHERE payout_id = ${payouts.sent}`],
  ],
  [
    'a payout that the service asks about too late',
    'statuses_agree_with_requests',
    ({ payouts }) => [
      `UPDATE request_due d SET at = r.next_check_at + interval '1 ms'
       FROM operator_request r WHERE r.id = d.request_id AND r.payout_id = ${payouts.sent}`,
    ],
  ],
  [
    'a payout that is sent under another identity after a restore',
    'statuses_agree_with_requests',
    ({ payouts }) => [stands(payouts.sent, 'correlation_id = gen_random_uuid()')],
  ],
  [
    'a payout that was asked for over more',
    'statuses_agree_with_requests',
    ({ payouts }) => [`UPDATE operator_request SET amount = amount + 1 WHERE payout_id = ${payouts.sent}`],
  ],
  [
    'a payout that went to another telephone',
    'statuses_agree_with_requests',
    ({ payouts }) => [
      `UPDATE operator_request SET phone = '+22370000099' WHERE payout_id = ${payouts.completed}`,
    ],
  ],
  [
    'a payout that was sent before it began',
    'statuses_agree_with_requests',
    ({ payouts }) => [
      stands(payouts.sent, `status = 'pending'`),
      `UPDATE payout_count SET n = n + 1 WHERE status = 'pending'`,
    ],
  ],
  [
    'a payout under way that no operator was asked for',
    'statuses_agree_with_requests',
    ({ payouts }) => [`DELETE FROM operator_request WHERE payout_id = ${payouts.sent}`],
  ],
  [
    'a paid deposit that the operator refused',
    'statuses_agree_with_requests',
    ({ paid }) => [`UPDATE operator_request SET state = 'refused' WHERE transaction_id = ${paid}`],
  ],
  [
    'a deposit that was asked for as a collection',
    'statuses_agree_with_requests',
    ({ open }) => [`UPDATE operator_request SET kind = 'collect' WHERE transaction_id = ${open}`],
  ],
  [
    'a payout that no person approved',
    'approvals_cover_what_is_paid',
    ({ payouts }) => [
      'ALTER TABLE payout DROP CONSTRAINT payout_approval',
      stands(payouts.asks, `status = 'processing'`),
    ],
  ],
  [
    'a payout that is not what a person would approve',
    'approvals_cover_what_is_paid',
    ({ payouts }) => [stands(payouts.asks, `destination_phone = '+22370000099'`)],
  ],
  [
    'two payouts of one name',
    'references_are_unique',
    ({ payouts }) => [
      'DROP INDEX payout_reference_merchant_id_key',
      `UPDATE payout SET reference = (SELECT reference FROM payout WHERE id = ${payouts.sent})
       WHERE id = ${payouts.completed}`,
    ],
  ],
  [
    'a payout that is not counted',
    'payouts_are_counted',
    ({ merchantId }) => [
      `UPDATE payout_count SET n = n - 1 WHERE merchant_id = ${merchantId} AND status = 'pending'`,
    ],
  ],
]

import type pg from 'pg'
import type { Invariant } from '../../src/ledger/verify.ts'
import { fundedMerchant } from '../kit/money.ts'
import {
  addRecipients,
  beginRecipients,
  cancelBatch,
  createBatch,
  openBatch,
  openDraft,
  payees,
  processBatch,
  recipientsOf,
  settleRecipients,
} from '../kit/money-bulk.ts'
import { reverseDisbursements } from '../kit/money-out.ts'

/** A merchant with a batch of each fate, and what became of who is in them. */
export interface BooksOfBatches {
  merchantId: number
  /** All ended: one was paid whole, one in part, one refused, and what one was paid came back. */
  done: number
  paid: bigint
  less: bigint
  refused: bigint
  back: bigint
  /** One is at the operator, one waits. */
  open: number
  sent: bigint
  waits: bigint
  /** Cancelled while one was at the operator, who paid. */
  stopped: number
  cancelled: bigint
  draft: number
  /** A draft that was cancelled. */
  gone: number
  /** A person is to decide. */
  asks: number
}

/** Makes the batches of one merchant by the verbs alone, and sends every due recipient. */
export async function keepBooksOfBatches(pool: pg.Pool, owner: pg.Pool): Promise<BooksOfBatches> {
  const merchant = await fundedMerchant(pool, 100_000n)
  const { merchantId } = merchant
  const idsOf = async (id: number) => (await recipientsOf(pool, id)).map((r) => r.id) as [bigint, bigint]
  const done = await openBatch(pool, merchant, payees(4, { amount: 3_000n }))
  await beginRecipients(pool)
  const [paid, less, refused, back] = (await idsOf(done)) as unknown as [bigint, bigint, bigint, bigint]
  await settleRecipients(pool, [
    { id: paid, to: 'success' },
    { id: less, to: 'success', amount: 1_000n },
    { id: back, to: 'success' },
  ])
  await settleRecipients(pool, [{ id: refused, to: 'failed' }])
  await reverseDisbursements(pool, [`recipient:${back}`])
  const stopped = await openBatch(pool, merchant, payees(2))
  const [gave, cancelled] = await idsOf(stopped)
  await beginRecipients(pool, { room: 1 })
  await cancelBatch(pool, merchant, stopped)
  await settleRecipients(pool, [{ id: gave, to: 'success' }])
  const open = await openBatch(pool, merchant, payees(2))
  const [sent, waits] = await idsOf(open)
  await beginRecipients(pool, { room: 1 })
  // The waiting recipient is not sent by the operations that follow.
  await owner.query(`UPDATE batch SET turn_at = now() + interval '1 hour' WHERE id = $1`, [open])
  const draft = await openDraft(pool, merchant, payees(1))
  await addRecipients(pool, merchant, draft, payees(1))
  const gone = await openDraft(pool, merchant, payees(2))
  await cancelBatch(pool, merchant, gone)
  await createBatch(pool, merchant, [], { retried: done })
  await owner.query('UPDATE merchant SET payouts_require_approval = true WHERE id = $1', [merchantId])
  const asks = await openDraft(pool, merchant, payees(2))
  await processBatch(pool, merchant, asks)
  await pool.query('SELECT make_missing_deliveries(1000)')
  const ended = { done, paid, less, refused, back, stopped, cancelled, gone }
  return { merchantId, ...ended, open, sent, waits, draft, asks }
}

type Corruption = readonly [what: string, names: Invariant, corruption: (books: BooksOfBatches) => string[]]

const unmoved = (origin: string, step: string) =>
  `DELETE FROM ledger_entry WHERE origin = '${origin}' AND step = '${step}'`
const moved = (origin: string, step: string, change: string) =>
  `UPDATE ledger_entry SET ${change} WHERE origin = '${origin}' AND step = '${step}'`
const move = (merchant: number, origin: string, [step, debit, credit]: readonly string[], amount: number) =>
  `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
   VALUES (${merchant}, '${origin}', '${step}', '${debit}', '${credit}', ${amount}, now())`
const counts = (id: number, change: string) => `UPDATE batch SET ${change} WHERE id = ${id}`
const is = (id: bigint, change: string) => `UPDATE batch_recipient SET ${change} WHERE id = ${id}`
const asked = (id: bigint, change: string) =>
  `UPDATE operator_request SET ${change} WHERE recipient_id = ${id}`
// Its position stays: without, the gap would be found.
const untold = (id: number, type: string) =>
  `UPDATE event SET type = 'batch_progress' WHERE data->>'batch_id' = '${id}' AND type = '${type}'`
const reserve = ['reserve', 'available', 'reserved'] as const
const post = ['post', 'reserved', 'clearing_operator_a'] as const
const back = ['void', 'reserved', 'available'] as const

/** Corruptions of rows since the proven point: each is found at once, and by the whole proof. */
export const corruptionsOfBatches: readonly Corruption[] = [
  [
    'a recipient who is not counted',
    'batches_are_counted',
    ({ open }) => [counts(open, 'processing_count = 0')],
  ],
  [
    'a payment that is not counted',
    'batches_are_counted',
    ({ done }) => [counts(done, 'paid_amount = 6000')],
  ],
  [
    'money back that is not counted',
    'batches_are_counted',
    ({ done }) => [counts(done, 'returned_amount = 0')],
  ],
  ['a recipient who gets more', 'batches_are_counted', ({ waits }) => [is(waits, 'amount = amount + 1')]],
  [
    'a recipient of another merchant',
    'batches_are_counted',
    ({ waits, merchantId }) => [is(waits, `merchant_id = ${merchantId + 1_000}`)],
  ],
  [
    'a batch that lost a recipient',
    'batches_are_counted',
    ({ waits }) => [`DELETE FROM batch_recipient WHERE id = ${waits}`],
  ],
  [
    'a batch that lost all its recipients',
    'batches_are_counted',
    ({ draft }) => [`DELETE FROM batch_recipient WHERE batch_id = ${draft}`],
  ],
  [
    'a batch that got a recipient while it ran',
    'batches_are_counted',
    ({ open }) => [
      `INSERT INTO batch_recipient (merchant_id, batch_id, name, account, amount, payment_method)
       SELECT merchant_id, id, 'Awa', '+22370000001', 1000, 'OperatorA' FROM batch WHERE id = ${open}`,
    ],
  ],
  ['a batch with nothing set aside', 'batches_end_once', ({ open }) => [unmoved(`batch:${open}`, 'reserve')]],
  [
    'a batch with less set aside',
    'batches_end_once',
    ({ open }) => [moved(`batch:${open}`, 'reserve', 'amount = amount - 1')],
  ],
  [
    'a batch that waits for people with nothing set aside',
    'batches_end_once',
    ({ asks }) => [unmoved(`batch:${asks}`, 'reserve')],
  ],
  [
    'a batch with the money of another merchant',
    'batches_end_once',
    ({ open }) => [moved(`batch:${open}`, 'reserve', 'merchant_id = 0')],
  ],
  [
    'money set aside for a draft',
    'batches_end_once',
    ({ merchantId, draft }) => [move(merchantId, `batch:${draft}`, reserve, 2_000)],
  ],
  [
    'money given back of a draft that was cancelled',
    'batches_end_once',
    ({ merchantId, gone }) => [move(merchantId, `batch:${gone}`, back, 2_000)],
  ],
  [
    'money set aside for a batch that is not there',
    'batches_end_once',
    ({ open }) => [moved(`batch:${open}`, 'reserve', `origin = 'batch:1999999999'`)],
  ],
  [
    'a batch that pays by itself',
    'batches_end_once',
    ({ merchantId, open }) => [move(merchantId, `batch:${open}`, post, 1_000)],
  ],
  [
    'a recipient who was cancelled and kept the money',
    'batches_end_once',
    ({ stopped }) => [unmoved(`batch:${stopped}`, 'void')],
  ],
  [
    'more given back than was cancelled',
    'batches_end_once',
    ({ stopped }) => [moved(`batch:${stopped}`, 'void', 'amount = amount + 1')],
  ],
  [
    'money given back of a batch that is under way',
    'batches_end_once',
    ({ merchantId, open }) => [move(merchantId, `batch:${open}`, back, 1_000)],
  ],
  [
    'a recipient whose money never left',
    'batches_end_once',
    ({ paid }) => [unmoved(`recipient:${paid}`, 'post')],
  ],
  [
    'a recipient who was paid less than it says',
    'batches_end_once',
    ({ paid }) => [moved(`recipient:${paid}`, 'post', 'amount = amount - 1')],
  ],
  [
    'a recipient paid by another operator',
    'batches_end_once',
    ({ paid }) => [moved(`recipient:${paid}`, 'post', `credit = 'clearing_operator_d'`)],
  ],
  [
    'a recipient paid by another merchant',
    'batches_end_once',
    ({ paid }) => [moved(`recipient:${paid}`, 'post', 'merchant_id = 0')],
  ],
  [
    'a recipient who is not there and was paid',
    'batches_end_once',
    ({ paid }) => [moved(`recipient:${paid}`, 'post', `origin = 'recipient:1999999999'`)],
  ],
  [
    'a rest that was not withheld',
    'batches_end_once',
    ({ less }) => [unmoved(`recipient:${less}`, 'withhold')],
  ],
  [
    'a withheld rest without an exception that people decide',
    'batches_end_once',
    ({ less }) => [`DELETE FROM settlement_exception WHERE recipient_id = ${less}`],
  ],
  [
    'a recipient who was refused and kept the money',
    'batches_end_once',
    ({ refused }) => [unmoved(`recipient:${refused}`, 'void')],
  ],
  [
    'a recipient who was refused and paid',
    'batches_end_once',
    ({ merchantId, refused }) => [
      unmoved(`recipient:${refused}`, 'void'),
      move(merchantId, `recipient:${refused}`, post, 3_000),
    ],
  ],
  [
    'a recipient who is paid before the operator says so',
    'batches_end_once',
    ({ merchantId, sent }) => [move(merchantId, `recipient:${sent}`, post, 1_000)],
  ],
  [
    'a recipient who is paid and was never sent',
    'batches_end_once',
    ({ merchantId, waits }) => [move(merchantId, `recipient:${waits}`, post, 1_000)],
  ],
  [
    'a recipient who is paid and was cancelled',
    'batches_end_once',
    ({ merchantId, cancelled }) => [move(merchantId, `recipient:${cancelled}`, post, 1_000)],
  ],
  [
    'a payment that came back for nothing',
    'batches_end_once',
    ({ back: id }) => [unmoved(`recipient:${id}`, 'reverse')],
  ],
  [
    'a payment that came back, and does not say so',
    'batches_end_once',
    ({ back: id }) => [is(id, 'reversed_at = NULL')],
  ],
  [
    'a movement of no batch',
    'entries_have_one_origin',
    ({ open }) => [moved(`batch:${open}`, 'reserve', `origin = 'batch:another'`)],
  ],
  [
    'a movement of no recipient',
    'entries_have_one_origin',
    ({ paid }) => [moved(`recipient:${paid}`, 'post', `origin = 'recipient:another'`)],
  ],
  [
    'a draft that was made without an event',
    'events_report_every_change',
    ({ draft }) => [untold(draft, 'batch_draft')],
  ],
  [
    'a batch that began without an event',
    'events_report_every_change',
    ({ done }) => [untold(done, 'batch_processing')],
  ],
  [
    'a batch that asks for approval without an event',
    'events_report_every_change',
    ({ asks }) => [untold(asks, 'batch_pending_approval')],
  ],
  [
    'a batch that ended without an event',
    'events_report_every_change',
    ({ done }) => [untold(done, 'bulk_pay_done')],
  ],
  [
    'a draft that was cancelled without an event',
    'events_report_every_change',
    ({ gone }) => [untold(gone, 'batch_cancelled')],
  ],
  [
    'a payment that came back without an event',
    'events_report_every_change',
    ({ done }) => [untold(done, 'recipient_reversed')],
  ],
  [
    'a payment that came back once and that two events report',
    'events_report_every_change',
    ({ done }) => [
      `SELECT append_events(array_agg((merchant_id, type, data)::new_event), now())
       FROM event WHERE data->>'batch_id' = '${done}' AND type = 'recipient_reversed'`,
    ],
  ],
  [
    'a batch whose end two events report',
    'events_report_every_change',
    ({ done }) => [
      `SELECT append_events(array_agg((merchant_id, type, data)::new_event), now())
       FROM event WHERE data->>'batch_id' = '${done}' AND type = 'bulk_pay_done'`,
    ],
  ],
  [
    'a batch whose end an event reports before it comes',
    'events_report_every_change',
    ({ open }) => [
      `SELECT append_events(array_agg((merchant_id, 'bulk_pay_done', data)::new_event), now())
       FROM event WHERE data->>'batch_id' = '${open}' AND type = 'batch_processing'`,
    ],
  ],
  [
    'a batch whose end an event reports with another sum',
    'events_report_every_change',
    ({ done }) => [
      `UPDATE event SET data = data || '{"paid_amount": 1}' WHERE data->>'batch_id' = '${done}'
       AND type = 'bulk_pay_done'`,
    ],
  ],
  [
    'a batch whose end an event reports to another merchant',
    'events_report_every_change',
    ({ done }) => [
      `UPDATE event SET merchant_id = 0 WHERE data->>'batch_id' = '${done}' AND type = 'bulk_pay_done'`,
    ],
  ],
  [
    'a recipient that the service never asks about',
    'statuses_agree_with_requests',
    ({ sent }) => [asked(sent, 'next_check_at = NULL')],
  ],
  [
    'a recipient whose request the service does not find when it is due',
    'statuses_agree_with_requests',
    ({ sent }) => [
      `DELETE FROM request_due d USING operator_request r
       WHERE r.id = d.request_id AND r.recipient_id = ${sent}`,
    ],
  ],
  [
    'a recipient who was sent under another identity',
    'statuses_agree_with_requests',
    ({ sent }) => [asked(sent, 'correlation_id = gen_random_uuid()')],
  ],
  [
    'a recipient who was sent more',
    'statuses_agree_with_requests',
    ({ sent }) => [asked(sent, 'amount = amount + 1')],
  ],
  [
    'a payment to another telephone',
    'statuses_agree_with_requests',
    ({ paid }) => [asked(paid, `phone = '+22370000099'`)],
  ],
  [
    'a paid recipient whom the operator refused',
    'statuses_agree_with_requests',
    ({ paid }) => [asked(paid, `state = 'refused'`)],
  ],
  [
    'a recipient who was sent before the turn came',
    'statuses_agree_with_requests',
    ({ sent, open }) => [
      is(sent, `status = 'pending', sent_at = NULL`),
      counts(open, 'processing_count = 0'),
    ],
  ],
  [
    'a recipient of whom no operator was asked',
    'statuses_agree_with_requests',
    ({ sent }) => [`DELETE FROM operator_request WHERE recipient_id = ${sent}`],
  ],
  [
    'a batch that is not what people would approve',
    'approvals_cover_what_is_paid',
    ({ asks }) => [`UPDATE batch_recipient SET account = '+22370000099' WHERE batch_id = ${asks}`],
  ],
]

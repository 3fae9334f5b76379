import type pg from 'pg'
import type { Invariant } from '../../src/ledger/verify.ts'
import { fundedMerchant, reverseMany, settleMany } from '../kit/money.ts'
import { openLink, payBy } from '../kit/money-links.ts'

/** A merchant with a link: one payment stands, one was taken back, one failed, one is open. */
export interface BooksOfLinks {
  merchantId: number
  link: number
  paid: bigint
  failed: bigint
  open: bigint
}

/** Keeps the books of one merchant's link, by the verbs alone. */
export async function keepBooksOfLinks(pool: pg.Pool, owner: pg.Pool): Promise<BooksOfLinks> {
  const { merchantId } = await fundedMerchant(pool, 0n)
  const link = await openLink(owner, merchantId)
  const ids: bigint[] = []
  for (let n = 0; n < 4; n += 1) ids.push((await payBy(pool, link)).id)
  const [paid, back, failed, open] = ids as [bigint, bigint, bigint, bigint]
  await settleMany(pool, [
    { id: paid, to: 'success' },
    { id: back, to: 'success' },
    { id: failed, to: 'failed' },
  ])
  await reverseMany(pool, [back])
  await pool.query('SELECT make_missing_deliveries(1000)')
  return { merchantId, link, paid, failed, open }
}

type Corruption = readonly [what: string, names: Invariant, corruption: (books: BooksOfLinks) => string[]]

const counts = (link: number, change: string) => `UPDATE payment_link SET ${change} WHERE id = ${link}`
const told = (id: bigint, change: string) =>
  `UPDATE event SET ${change} WHERE type = 'payment_link_used' AND data->>'transaction_id' = '${id}'`
const tellAgain = (as: string, id: bigint) =>
  `SELECT append_events(array_agg((merchant_id, type, ${as})::new_event), max(created_at)) FROM event
   WHERE type = 'payment_link_used' AND data->>'transaction_id' = '${id}'`

/** Corruptions of rows since the proven point: each is found at once, and by the whole proof. */
export const corruptionsOfLinks: readonly Corruption[] = [
  ['a use that is not counted', 'links_are_counted', ({ link }) => [counts(link, 'usage_count = 1')]],
  ['an attempt that holds no place', 'links_are_counted', ({ link }) => [counts(link, 'open_count = 0')]],
  ['a place that no attempt holds', 'links_are_counted', ({ link }) => [counts(link, 'open_count = 2')]],
  [
    "a payment by another merchant's link",
    'links_are_counted',
    ({ link, merchantId }) => [counts(link, `merchant_id = ${merchantId + 1_000}`)],
  ],
  [
    'a payment that lost its link',
    'links_are_counted',
    ({ paid }) => [`UPDATE transaction SET payment_link_id = NULL WHERE id = ${paid}`],
  ],
  [
    'a use that no event reports',
    'events_report_every_change',
    // Its position stays: without, the gap would be found.
    ({ paid }) => [told(paid, `type = 'team_login'`)],
  ],
  ['a use that two events report', 'events_report_every_change', ({ paid }) => [tellAgain('data', paid)]],
  [
    'a use that an event reports with another amount',
    'events_report_every_change',
    ({ paid }) => [told(paid, `data = jsonb_set(data, '{amount}', '1')`)],
  ],
  [
    'a use that an event reports of another link',
    'events_report_every_change',
    ({ paid }) => [told(paid, `data = jsonb_set(data, '{payment_link_id}', '1000000')`)],
  ],
  [
    'a use that an event reports to another merchant',
    'events_report_every_change',
    ({ paid, merchantId }) => [told(paid, `merchant_id = ${merchantId + 1_000}`)],
  ],
  [
    'a use that an event reports and that never happened',
    'events_report_every_change',
    ({ paid, failed }) => [tellAgain(`jsonb_set(data, '{transaction_id}', '${failed}')`, paid)],
  ],
]

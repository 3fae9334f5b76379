import type pg from 'pg'
import { makeMerchant } from './merchants.ts'

const hourMs = 60 * 60 * 1_000
/**
 * The beginnings of the two times of random payments, around the changes of summer time: in spring at
 * midnight in Beirut (29 March) and Cairo (24 April), in autumn at midnight or 01:00 in the Azores and
 * Havana, and in New York on 1 November.
 */
export const beginnings = [Date.UTC(2026, 2, 22), Date.UTC(2026, 9, 12)]
/** The length of each of them. */
export const spanMs = 35 * 24 * hourMs

/** The three payment links of a merchant. */
export const linksOf = (merchant: number) => [1, 2, 3].map((nth) => merchant * 10 + nth)

type Life = readonly [merchant: number, operator: string, amount: number, at: Date, reference: string]
interface Outcome {
  settledAt: Date
  settled: number
  reason: string
}

/** Payments of every kind by many random ways, each written as rows: no rule of the service is in between. */
export interface RandomPayments {
  /** Makes a merchant with links and a batch. @returns its id */
  openMerchant: () => Promise<number>
  /** Adds payments of every kind, some exactly at an hour, and moves each along a random life. */
  addPayments: (merchant: number, n: number) => Promise<void>
}

/**
 * @param owner connections with the rights of the owner
 * @param random makes numbers from 0 to just below 1
 */
export function randomPayments(owner: pg.Pool, random: () => number): RandomPayments {
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item
  let made = 0

  async function openMerchant(): Promise<number> {
    const { merchantId } = await makeMerchant(owner)
    await owner.query(
      `WITH links AS (
         INSERT INTO payment_link (id, merchant_id, title, url_slug, open_count, created_at, updated_at)
         SELECT link, $1, 'Mil', 'link-' || link, 1000, now(), now() FROM unnest($2::int[]) AS link
       )
       INSERT INTO batch (id, merchant_id, maker, created_at) VALUES ($1, $1, 'member:1', now())`,
      [merchantId, linksOf(merchantId)],
    )
    return merchantId
  }

  async function addPayments(merchant: number, n: number): Promise<void> {
    for (let each = 0; each < n; each += 1) {
      made += 1
      const at = new Date(pick(beginnings) + Math.floor(random() * spanMs))
      if (random() < 0.2) at.setUTCMinutes(0, 0, 0)
      const operator = pick(['OperatorA', 'OperatorB', 'OperatorC'])
      const amount = 1_000 + Math.floor(random() * 9_000)
      const reason = pick(['PAYER_LIMIT_REACHED', 'PAYER_INSUFFICIENT_FUNDS'])
      const settledAt = new Date(at.getTime() + Math.floor(Math.exp(random() * 16)))
      const settled = pick([amount, amount, amount - 1])
      const life = [merchant, operator, amount, at, `p-${made}`] as const
      const kind = pick(['pay', 'pay', 'deposit', 'payout', 'recipient'])
      if (kind === 'payout') await addPayout(life, { settledAt, settled, reason })
      else if (kind === 'recipient') await addRecipient(life, { settledAt, settled, reason })
      else await addTransaction(kind, life, { settledAt, settled, reason })
    }
  }

  async function addTransaction(kind: string, life: Life, { settledAt, settled, reason }: Outcome) {
    const { rows } = await owner.query<{ id: bigint }>(
      `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
         reference, request_data, created_at, payment_link_id)
       VALUES ($1, $6, $2, '+22370000001', $3, $7, $5, '{}', $4, $8) RETURNING id`,
      [
        ...life,
        kind,
        kind === 'pay' ? 'pending' : 'processing',
        kind === 'pay' ? pick([null, ...linksOf(life[0])]) : null,
      ],
    )
    const ends = kind === 'pay' ? ['success', 'expired', 'cancelled'] : ['success']
    const status = pick(['', 'success', 'failed', ...ends])
    if (status === '') return
    await owner.query(
      `UPDATE transaction SET status = $2::transaction_status, settled_at = $3,
         settled_amount = CASE WHEN $2 = 'success' THEN $4::bigint END,
         failure_reason = CASE WHEN $2 = 'failed' THEN $5 END WHERE id = $1`,
      [rows[0]?.id, status, settledAt, settled, reason],
    )
    if (kind === 'deposit' && status === 'success' && random() < 0.3)
      await owner.query(`UPDATE transaction SET status = 'reversed' WHERE id = $1`, [rows[0]?.id])
  }

  async function addPayout(life: Life, { settledAt, settled, reason }: Outcome): Promise<void> {
    const later = pick([0, 0, 36]) * hourMs
    const { rows } = await owner.query<{ id: bigint }>(
      `INSERT INTO payout (merchant_id, payment_method, destination_phone, amount, reference, send_at,
         approval, maker, request_data, created_at)
       VALUES ($1, $2, '+22370000001', $3, $5, $6, 'not_required', 'member:1', '{}', $4) RETURNING id`,
      [...life, new Date(life[3].getTime() + later)],
    )
    const status = pick(['pending', 'completed', 'completed', 'failed', 'cancelled', 'reversed'])
    if (status === 'pending') return
    if (status !== 'cancelled')
      await owner.query(`UPDATE payout SET status = 'processing' WHERE id = $1`, [rows[0]?.id])
    await owner.query(
      `UPDATE payout SET status = CASE $2 WHEN 'reversed' THEN 'completed' ELSE $2 END::payout_status,
         settled_at = $3::timestamptz + $6 * interval '1 millisecond',
         settled_amount = CASE WHEN $2 IN ('completed', 'reversed') THEN $4::bigint END,
         reversed_at = CASE $2 WHEN 'reversed' THEN $3::timestamptz END,
         failure_reason = CASE WHEN $2 = 'failed' THEN $5 END WHERE id = $1`,
      [rows[0]?.id, status, settledAt, settled, reason, later],
    )
  }

  async function addRecipient(life: Life, { settledAt, settled, reason }: Outcome): Promise<void> {
    const { rows } = await owner.query<{ id: bigint }>(
      `INSERT INTO batch_recipient (merchant_id, batch_id, name, account, amount, payment_method)
       VALUES ($1, $1, $4, '+22370000001', $3, $2) RETURNING id`,
      [life[0], life[1], life[2], life[4]],
    )
    const id = rows[0]?.id
    if (random() < 0.2) {
      const status = `UPDATE batch_recipient SET status = 'cancelled', settled_at = now() WHERE id = $1`
      return void (await owner.query(status, [id]))
    }
    await owner.query(`UPDATE batch_recipient SET status = 'processing', sent_at = $2 WHERE id = $1`, [
      id,
      life[3],
    ])
    const status = pick(['processing', 'success', 'success', 'failed', 'reversed'])
    if (status === 'processing') return
    await owner.query(
      `UPDATE batch_recipient
       SET status = CASE $2 WHEN 'reversed' THEN 'success' ELSE $2 END::recipient_status,
         settled_at = $3, settled_amount = CASE WHEN $2 IN ('success', 'reversed') THEN $4::bigint END,
         reversed_at = CASE $2 WHEN 'reversed' THEN $3::timestamptz END,
         failure_reason = CASE WHEN $2 = 'failed' THEN $5 END WHERE id = $1`,
      [id, status, settledAt, settled, reason],
    )
  }

  return { openMerchant, addPayments }
}

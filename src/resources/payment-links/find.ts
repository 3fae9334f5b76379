import type { Pool } from 'pg'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { shareStatement } from '../../database/shared-statements.ts'
import type { Xof } from '../../shared/money.ts'
import type { Provider } from '../../shared/providers.ts'
import { readReceipt } from '../transactions/receipt.ts'
import type { TransactionStatus } from '../transactions/states.ts'
import { type LinkAvailability, availabilityOf, freeInMsSql } from './availability.ts'
import { slug as slugSchema } from './slug.ts'

/** The reason why these functions bypass row-level security. */
const reason = 'a payer is not signed in: the slug is the credential'

/** A payment link as its payer sees it. */
export interface PublicLink {
  id: number
  slug: string
  merchantName: string
  merchantPhone: string | null
  merchantAddress: string | null
  title: string
  description: string | null
  /** The amount to pay; null where the payer types it. */
  amount: Xof | null
  availability: LinkAvailability
  /** Ms until a slot becomes free at the latest, where open attempts hold all slots; else null. */
  freeInMs: number | null
}

interface Row extends Omit<PublicLink, 'availability'> {
  isActive: boolean
  expiresAt: Date | null
  usageLimit: number | null
  usageCount: number
  openCount: number
}

/**
 * Finds the link with this slug, of any merchant; null where there is none, or where its merchant is not
 * active. The link is read after the call began: a call that arrives while a statement runs is answered by
 * the next statement.
 */
export async function findPublicLink(ctx: Context, slug: string): Promise<PublicLink | null> {
  if (!slugSchema.safeParse(slug).success) return null
  const row = await ctx.sharedStatements.run(findMany, slug)
  if (!row) return null
  const { id, merchantName, merchantPhone, merchantAddress, title, description, amount, freeInMs } = row
  const availability = availabilityOf(row, freeInMs, ctx.clock.now())
  const merchant = { merchantName, merchantPhone, merchantAddress }
  return { id, slug: row.slug, ...merchant, title, description, amount, availability, freeInMs }
}

/**
 * Reads many links in one statement. The inner SELECT hides the number of slugs from PostgreSQL: for one or
 * two slugs PostgreSQL would plan every execution anew, which takes longer than the execution.
 */
const findMany = shareStatement(async (pool: Pool, slugs: readonly string[]) => {
  const { rows } = await pool.query<Row>({
    name: 'public_links',
    text: `SELECT l.id, l.url_slug AS slug, m.name AS "merchantName",
        m.business_phone AS "merchantPhone", m.business_address AS "merchantAddress",
        l.title, l.description, l.amount,
        l.is_active AS "isActive", l.expires_at AS "expiresAt", l.usage_limit AS "usageLimit",
        l.usage_count AS "usageCount", l.open_count AS "openCount", ${freeInMsSql} AS "freeInMs"
      FROM payment_link l JOIN merchant m ON m.id = l.merchant_id AND m.status = 'active'
      WHERE l.url_slug = ANY ((SELECT $1::text[])::text[])`,
    values: [[...new Set(slugs)]],
  })
  const found = new Map(rows.map((row) => [row.slug, row]))
  return slugs.map((slug) => found.get(slug) ?? null)
})

export interface PayerPayment {
  id: bigint
  merchantId: number
  merchantName: string
  merchantPhone: string | null
  merchantAddress: string | null
  /** The slug of its link; null where the merchant requested the payment without a link. */
  slug: string | null
  /** The title of the link, or the description that the merchant wrote. */
  title: string | null
  reference: string
  /** The paid amount where it is known, else the requested amount. */
  amount: Xof
  /** The requested amount; less may have been paid. */
  requested: Xof
  refunded: Xof
  provider: Provider
  phone: string
  status: TransactionStatus
  paymentUrl: string | null
  operatorReference: string | null
  failureReason: string | null
  createdAt: Date
  settledAt: Date | null
}

const payerPayment = `SELECT t.id, t.merchant_id AS "merchantId", m.name AS "merchantName",
    m.business_phone AS "merchantPhone", m.business_address AS "merchantAddress",
    l.url_slug AS slug, coalesce(l.title, t.request_data->>'description') AS title, t.reference,
    coalesce(t.settled_amount, t.amount) AS amount, t.amount AS requested,
    (SELECT r.paid FROM refunds_of(t.id) AS r) AS refunded,
    t.payment_method AS provider, t.customer_phone AS phone, t.status, t.payment_url AS "paymentUrl",
    t.operator_reference AS "operatorReference", t.failure_reason AS "failureReason",
    t.created_at AS "createdAt", t.settled_at AS "settledAt"
  FROM transaction t JOIN merchant m ON m.id = t.merchant_id
    LEFT JOIN payment_link l ON l.id = t.payment_link_id`

/**
 * Finds a payment that was made through a link, by the payment's reference. A caller that knows the reference
 * may see the payment, because the reference contains 128 random bits.
 */
export async function findLinkPayment(
  ctx: Context,
  slug: string,
  reference: string,
): Promise<PayerPayment | null> {
  if (!/^mp_[0-9a-f]{32}$/.test(reference) || !slugSchema.safeParse(slug).success) return null
  const { rows } = await asPlatform(ctx, reason).pool.query<PayerPayment>({
    name: 'link_payment',
    text: `${payerPayment} WHERE t.reference = $1 AND l.url_slug = $2`,
    values: [reference, slug],
  })
  return rows[0] ?? null
}

/** Finds the collection of a receipt, paid by a link or not, by the token in the receipt's address. */
export async function findReceipt(ctx: Context, token: string): Promise<PayerPayment | null> {
  const id = readReceipt(ctx, token)
  if (id === null) return null
  const { rows } = await asPlatform(ctx, reason).pool.query<PayerPayment>({
    name: 'receipt',
    text: `${payerPayment} WHERE t.id = $1 AND t.transaction_type = 'pay'`,
    values: [id],
  })
  return rows[0] ?? null
}

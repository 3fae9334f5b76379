import type pg from 'pg'

// This file inserts rows into the lists that clients search, as the owner of the database, and says in
// JavaScript which rows a search must find. It shares no code with the service for that.

/** The kinds of lists that have a search. */
export type ListName = 'transactions' | 'payouts' | 'paymentLinks' | 'recipients'

/** A row that a test inserts. */
export interface NewRow {
  /** The reference, the title or the name. */
  title: string
  phone: string
  /** The operator's reference, or a part of the address of a link. */
  code: string | null
  beneficiary: string | null
  amount: number
  /** The place of its status in `statuses`. */
  state: number
  /** The day of its creation, counted from the first of January 2026. */
  day: number
}

/** A row as the model knows it. */
export interface ListedRow {
  id: number
  amount: number
  status: string
  createdAt: Date
  /** The texts in which a search looks. */
  texts: readonly string[]
}

interface ListKind {
  statuses: readonly string[]
  insert: string
  select: string
}

const given = `ROWS FROM (jsonb_to_recordset($2) AS (title text, phone text, code text, beneficiary text,
  amount bigint, state int, day int)) WITH ORDINALITY
  AS r (title, phone, code, beneficiary, amount, state, day, nth)`
const at = "timestamptz '2026-01-01 12:00Z' + r.day * interval '1 day'"

/** How the rows of each kind are inserted and read. The rows of a merchant's recipients are in one batch. */
export const listKinds: Readonly<Record<ListName, ListKind>> = {
  transactions: {
    statuses: ['failed', 'expired', 'success'],
    insert: `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount,
        status, reference, operator_reference, request_data, settled_amount, created_at)
      SELECT $1, 'pay', 'OperatorA', phone, amount, s.status, title, code, '{}',
        CASE s.status WHEN 'success' THEN amount END, ${at}
      FROM ${given}, LATERAL (
        SELECT (ARRAY['failed', 'expired', 'success'])[1 + state]::transaction_status AS status) AS s
      ORDER BY nth`,
    select: `SELECT id::int, amount::int, status, created_at AS "createdAt",
        ARRAY[reference, customer_phone, coalesce(operator_reference, '')] AS texts
      FROM transaction WHERE merchant_id = $1 ORDER BY id`,
  },
  payouts: {
    statuses: ['failed', 'cancelled'],
    insert: `INSERT INTO payout (merchant_id, payment_method, destination_phone, amount, status, reference,
        operator_reference, beneficiary_name, send_at, approval, maker, request_data, created_at)
      SELECT $1, 'OperatorA', phone, amount, (ARRAY['failed', 'cancelled'])[1 + state % 2]::payout_status,
        title, code, beneficiary, now(), 'not_required', 'member:1', '{}', ${at}
      FROM ${given} ORDER BY nth`,
    select: `SELECT id::int, amount::int, status, created_at AS "createdAt", ARRAY[reference,
        destination_phone, coalesce(operator_reference, ''), coalesce(beneficiary_name, '')] AS texts
      FROM payout WHERE merchant_id = $1 ORDER BY id`,
  },
  paymentLinks: {
    statuses: ['active', 'inactive'],
    insert: `INSERT INTO payment_link (merchant_id, title, amount, url_slug, is_active, created_at,
        updated_at)
      SELECT $1, title, amount, lower(coalesce(code, 'lien')) || '-' || $1::int || '-' || nth, state % 2 = 0,
        ${at}, now()
      FROM ${given} ORDER BY nth`,
    select: `SELECT id, amount::int, CASE WHEN is_active THEN 'active' ELSE 'inactive' END AS status,
        created_at AS "createdAt", ARRAY[title, url_slug] AS texts
      FROM payment_link WHERE merchant_id = $1 ORDER BY id`,
  },
  recipients: {
    statuses: ['pending', 'cancelled'],
    insert: `WITH made AS (
        INSERT INTO batch (merchant_id, maker, created_at, recipient_count, total_amount)
        SELECT $1, 'api_key:1', now(), count(*), sum(amount) FROM ${given} RETURNING id
      ) INSERT INTO batch_recipient (merchant_id, batch_id, name, account, amount, payment_method, status,
        operator_reference, settled_at)
      SELECT $1, made.id, title, phone, amount, 'OperatorA',
        (ARRAY['pending', 'cancelled'])[1 + state % 2]::recipient_status, code,
        CASE state % 2 WHEN 1 THEN now() END
      FROM made, ${given} ORDER BY nth`,
    select: `SELECT id::int, amount::int, status, now() AS "createdAt",
        ARRAY[name, account, coalesce(operator_reference, '')] AS texts
      FROM batch_recipient WHERE merchant_id = $1 ORDER BY id`,
  },
}

/** Inserts rows of a merchant. @returns all rows of the merchant, oldest first */
export async function insertRows(
  owner: pg.Pool,
  list: ListName,
  merchantId: number,
  rows: readonly NewRow[],
): Promise<ListedRow[]> {
  await owner.query(listKinds[list].insert, [merchantId, JSON.stringify(rows)])
  return readListed(owner, list, merchantId)
}

/** Reads all rows of a merchant, oldest first. */
export async function readListed(owner: pg.Pool, list: ListName, merchantId: number): Promise<ListedRow[]> {
  return (await owner.query<ListedRow>(listKinds[list].select, [merchantId])).rows
}

/** Returns a text without capitals and accents. */
function plainForm(text: string): string {
  return text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase()
}

/** Whether a search finds a row: whether one of its texts contains the search, or the same number. */
export function isFound({ texts }: Pick<ListedRow, 'texts'>, search: string): boolean {
  const words = search.trim()
  const joined = words.split(/\s+/).join('')
  const forms = /^\+?\d+$/.test(joined) ? [words, joined] : [words]
  return forms.some((form) => texts.some((text) => plainForm(text).includes(plainForm(form))))
}

/** The orders of a list in the words of GraphQL. */
export const orders = ['CREATED_AT_DESC', 'CREATED_AT_ASC', 'AMOUNT_DESC', 'AMOUNT_ASC'] as const
export type Order = (typeof orders)[number]

/** Sorts rows as a list in this order has them. Rows of the same amount are in the order of their ids. */
export function inOrder(rows: readonly ListedRow[], order: Order = 'CREATED_AT_DESC'): ListedRow[] {
  const sign = order.endsWith('DESC') ? -1 : 1
  const isByAmount = order.startsWith('AMOUNT')
  return rows.toSorted((one, other) => {
    const byAmount = isByAmount ? one.amount - other.amount : 0
    return sign * (byAmount || one.id - other.id)
  })
}

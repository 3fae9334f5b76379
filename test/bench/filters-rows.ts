import type pg from 'pg'

// The rows of long lists, with words as merchants write them. Row n has the same words in the list of each
// merchant. All is arithmetic of n, so that two runs read the same rows.

/** The lists that are filled, and their columns, in SQL of `n`. */
export interface FilledTable {
  name: 'transaction' | 'payout' | 'payment_link'
  columns: Readonly<Record<string, string>>
}

/** One of these rows is of a rare kind. */
export const rareEvery = 5_000
/** As in a list of a busy shop, which grows by so many rows a day: a longer list is an older one. */
const perDay = 2_500

const digits = (n: string) => `md5(${n}::text)`
const mixed = 'n::bigint * 2654435761 % 4294967296'
const isRare = `n % ${rareEvery} = 1234`
const operator = "('Operator' || substr('ABCD', 1 + n % 4, 1))::provider"
const phone = `'+223' || 70000000 + (${mixed}) % 10000000`
const amount = `CASE WHEN ${isRare} THEN 5000000 ELSE 1000 + (${mixed}) / 16 % 500 * 100 END`
const operatorReference = `substr(${digits("'o' || n")}, 1, 12)`
/** In $4 is the row that has words of its own. */
const reference = `CASE
  WHEN n = $4 THEN 'Solde du siècle'
  WHEN n % 1000 = 500 THEN 'Ramadan ' || n
  WHEN n % 100 = 50 THEN 'Tabaski ' || n
  WHEN n % 20 = 3 THEN 'Échéance ' || n
  WHEN n % 4 = 0 THEN 'INV-2026-' || lpad(n::text, 7, '0')
  WHEN n % 4 = 1 THEN ${digits('n')}::uuid::text
  WHEN n % 4 = 2 THEN 'Commande ' || n
  ELSE 'CMD/' || n END`
const oneOf = (of: string, words: readonly string[]) =>
  `(ARRAY['${words.join("', '")}'])[1 + (${mixed}) / ${of} % ${words.length}]`
const firstNames = ['Aïssata', 'Moussa', 'Fatoumata', 'Boubacar', 'Kadiatou', 'Seydou', 'Mariam', 'Ibrahîm']
const lastNames = ['Traoré', 'Diarra', 'Coulibaly', 'Keïta', 'Konaté', 'Touré', 'Bâ', 'Sangaré', 'Cissé']
const person = `${oneOf('8', firstNames)} || ' ' || ${oneOf('4096', lastNames)}`
const settled = { payment_method: operator, amount, reference, operator_reference: operatorReference }

export const filledTables: readonly FilledTable[] = [
  {
    name: 'transaction',
    columns: {
      ...settled,
      transaction_type: "(CASE n % 7 WHEN 0 THEN 'deposit' ELSE 'pay' END)::transaction_type",
      customer_phone: phone,
      status: `(CASE WHEN ${isRare} THEN 'expired' WHEN n % 10 = 0 THEN 'failed'
        ELSE 'success' END)::transaction_status`,
      settled_amount: `CASE WHEN NOT ${isRare} AND n % 10 > 0 THEN ${amount} END`,
      request_data: `'{"amount": 5000, "currency": "XOF", "payment_method": "OperatorA"}'`,
    },
  },
  {
    name: 'payout',
    columns: {
      ...settled,
      destination_phone: phone,
      status: `(CASE WHEN ${isRare} THEN 'failed' ELSE 'completed' END)::payout_status`,
      settled_amount: `CASE WHEN NOT ${isRare} THEN ${amount} END`,
      send_at: 'now()',
      approval: "'not_required'",
      maker: `CASE WHEN ${isRare} THEN 'member:2' ELSE 'member:1' END`,
      beneficiary_name: person,
      request_data: `'{"amount": 5000, "currency": "XOF", "payment_method": "OperatorA"}'`,
    },
  },
  {
    name: 'payment_link',
    columns: {
      amount: '5000',
      title: reference,
      url_slug: `'boutique-' || $1::int || '-' || substr(${digits('n')}, 1, 8) || n`,
      is_active: 'true',
      updated_at: 'now()',
    },
  },
]

/** The row in the middle of a list, where its words are found last. */
export const middleOf = (rows: number) => Math.floor(rows / 2)

/** Fills a list of a merchant without triggers: one statement writes the counts of transactions. */
export async function fillTable(
  owner: pg.Pool,
  { name, columns }: FilledTable,
  merchantId: number,
  rows: number,
): Promise<void> {
  const client = await owner.connect()
  try {
    // The indexes of words are written at the end, as far as the memory goes, and not at each row.
    await client.query(`SET session_replication_role = replica; SET synchronous_commit = off;
      SET statement_timeout = 0; SET gin_pending_list_limit = '512MB'; SET maintenance_work_mem = '512MB'`)
    const createdAt = `now() - ($3::int - n + 0.5) * interval '1 day' / ${perDay}`
    await client.query(
      `INSERT INTO ${name} (merchant_id, created_at, ${Object.keys(columns).join(', ')})
       SELECT $1::int, ${createdAt}, ${Object.values(columns).join(', ')}
       FROM generate_series($2::int, $3::int) AS n WHERE $4::int > 0 ORDER BY n`,
      [merchantId, 1, rows, middleOf(rows)],
    )
    if (name === 'transaction') await client.query(countTransactions, [merchantId])
  } finally {
    client.release(true)
  }
}

const countTransactions = `INSERT INTO transaction_count_change (merchant_id, bucket, transaction_type,
    payment_method, status, hour, n, amount, settled_amount)
  SELECT merchant_id, id / 1024, transaction_type, payment_method, status,
    date_trunc('hour', created_at, 'UTC'), count(*), sum(amount), coalesce(sum(settled_amount), 0)
  FROM transaction WHERE merchant_id = $1 GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 6`

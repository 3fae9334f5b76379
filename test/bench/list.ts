import { setTimeout as sleep } from 'node:timers/promises'
import { bearer, compare, latency } from './compare.ts'
import type { BenchFixture } from './fixture.ts'
import type { Goal } from './rounds.ts'

/** The rows of the merchant with the short list: its first page is the measure. */
const smallRows = 10_000
/** Rows that one statement adds. */
const stretch = 50_000

/** `GET /transactions` with its exact total, deep in a long list, against the first page of a short one. */
export const list = compare({ merchants: 2 }, async ({ fixture, product }, { rows }) => {
  const [small, large] = product.merchants
  if (!small || !large) throw new Error('No merchants.')
  await fill(fixture, small.merchantId, smallRows)
  await fill(fixture, large.merchantId, rows)
  await addUp(fixture)
  await fixture.owner.query('VACUUM ANALYZE transaction')

  const page = (name: string, merchant: typeof small, query: string, goal?: Goal) => {
    const path = `/merchant/api/transactions?limit=20&${query}`
    const request = { method: 'GET', path, headers: bearer(merchant) }
    return latency(name, product, { status: 200, words: '"reference"', request }, goal)
  }
  const deep = Math.floor(rows * 0.9)
  const words = (count: number) => count.toLocaleString('en')
  return {
    sections: [
      {
        title: 'list with exact total',
        unit: 'ms (median)',
        entries: [
          page(`first page of ${words(smallRows)}`, small, 'offset=0'),
          page(`first page of ${words(rows)}`, large, 'offset=0', { ratioMax: 2 }),
          page(`90 % deep in ${words(rows)}`, large, `offset=${deep}`, { ratioMax: 2 }),
          page('90 % deep, one status', large, `status=success&offset=${Math.floor(deep * 0.9)}`),
          page('90 % deep, one type and operator', large, `${oneKind}&offset=${Math.floor(deep / 4)}`),
          page('first page of a rare status', large, 'status=expired'),
          page('one customer', large, 'customer_phone=%2B22370000001'),
        ],
      },
    ],
    notes: ['Every entry is the service itself, over REST, one request at a time; x limit compares times.'],
  }
})

const oneKind = 'transaction_type=pay&payment_method=OperatorB'

/** Nine in ten are paid, one in a thousand expired, the rest failed; a thousand customers. */
export async function fill(fixture: BenchFixture, merchantId: number, rows: number): Promise<void> {
  for (let from = 0; from < rows; from += stretch) {
    await fixture.owner.query(
      `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
         reference, request_data, settled_amount, settled_at, created_at)
       SELECT $1, 'pay', ('Operator' || substr('ABCD', 1 + n % 4, 1))::provider,
         '+223' || (70000000 + n / 7 % 1000), 5000, status, 'list-' || n,
         '{"amount": 5000, "currency": "XOF", "payment_method": "OperatorA"}',
         CASE status WHEN 'success' THEN 5000 END, now(), now() - (1000000 - n) * interval '1 second'
       FROM generate_series($2::int, $3::int) AS n, LATERAL (
         SELECT (CASE WHEN n % 1000 = 0 THEN 'expired' WHEN n % 10 = 0 THEN 'failed' ELSE 'success' END
         )::transaction_status AS status) AS picked`,
      [merchantId, from + 1, Math.min(from + stretch, rows)],
    )
  }
}

/** The service adds up what the statements left. */
export async function addUp(fixture: BenchFixture): Promise<void> {
  for (;;) {
    const { rows } = await fixture.owner.query('SELECT FROM transaction_count_change LIMIT 1')
    if (rows.length === 0) return
    await sleep(pollMs)
  }
}

const pollMs = 50

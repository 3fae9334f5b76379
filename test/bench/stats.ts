import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bearer, compare, latency } from './compare.ts'
import type { BenchFixture } from './fixture.ts'
import { addUp } from './list.ts'
import type { Goal } from './rounds.ts'

/** Rows that one statement adds. */
const stretch = 50_000
const days = 90
const homePage = readFileSync(join(import.meta.dirname, '../graphql/pages/home.graphql'), 'utf8')

/** The figures of a merchant with many payments, as the pages of a dashboard ask for them. */
export const stats = compare({ merchants: 1 }, async ({ fixture, product }, { rows }) => {
  const [merchant] = product.merchants
  if (!merchant) throw new Error('No merchant.')
  await fill(fixture, merchant.merchantId, rows)
  await addUp(fixture)
  await fixture.owner.query('VACUUM ANALYZE transaction, payment_figure, settle_time')

  const since = (daysAgo: number) => new Date(Date.now() - daysAgo * 24 * 60 * 60 * 1_000).toISOString()
  const send = (name: string, query: string, from: string, goal?: Goal) => {
    const body = JSON.stringify({ query, variables: { from } })
    const request = { method: 'POST', path: '/graphql', headers: bearer(merchant), body }
    return latency(name, product, { status: 200, words: '"count"', request }, goal)
  }
  const ask = (name: string, field: string, goal?: Goal) =>
    send(name, `query ($from: DateTime!) { ${field} }`, since(days), goal)
  const home = (daysShown: number) =>
    send(`the home page, ${daysShown} days`, homePage, since(daysShown), { valueMax: 100 })
  const buckets = (figures: string) =>
    `{ total { ${figures} } buckets { start ${figures} groups { ${figures} } } }`
  const counts = buckets('count amount successRate')
  const times = buckets('count medianMs p95Ms')
  return {
    sections: [
      {
        title: `figures of ${days} days and ${rows.toLocaleString('en')} payments`,
        unit: 'ms (median)',
        entries: [
          ask('by day', `paymentStats(from: $from) ${counts}`),
          ask('by day and operator', `paymentStats(from: $from, by: [OPERATOR]) ${counts}`),
          ask(
            'by day and every property',
            `paymentStats(from: $from, by: [OPERATOR, STATUS, TYPE, FAILURE]) ${counts}`,
          ),
          ask('by day, with times', `paymentStats(from: $from) ${times}`),
          ask('by hour', `paymentStats(from: $from, groupBy: HOUR) ${counts}`),
          ask('by day in Shanghai', `paymentStats(from: $from, timeZone: "Asia/Shanghai") ${counts}`),
          ask('by month, with times', `paymentStats(from: $from, groupBy: MONTH) ${times}`),
          home(30),
          home(90),
        ],
      },
    ],
    notes: ['Every entry is the service itself, over GraphQL, one request at a time.'],
  }
})

/** Payments of four operators, spread over the days; eight in ten are settled within 3 to 160 seconds. */
async function fill(fixture: BenchFixture, merchantId: number, rows: number): Promise<void> {
  for (let from = 0; from < rows; from += stretch) {
    await fixture.owner.query(
      `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
         reference, request_data, settled_amount, failure_reason, settled_at, created_at)
       SELECT $1, 'pay', ('Operator' || substr('ABCD', 1 + n % 4, 1))::provider, '+22370000001', 5000,
         picked.status, 'stats-' || n, '{}', CASE picked.status WHEN 'success' THEN 5000 END,
         CASE picked.status WHEN 'failed' THEN (ARRAY['PAYER_TIMEOUT', 'PAYER_DECLINED'])[1 + n % 2] END,
         made.at + exp(n % 997 / 250.0) * interval '3 seconds', made.at
       FROM generate_series($2::int, $3::int) AS n, LATERAL (
         SELECT (CASE WHEN n % 10 = 0 THEN 'expired' WHEN n % 10 = 5 THEN 'failed' ELSE 'success' END
         )::transaction_status AS status) AS picked, LATERAL (
         SELECT now() - ($4::int - n) * interval '1 day' * $5::int / $4::int AS at) AS made`,
      [merchantId, from + 1, Math.min(from + stretch, rows), rows, days],
    )
  }
}

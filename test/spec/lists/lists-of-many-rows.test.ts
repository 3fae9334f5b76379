import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { compactCounts } from '../../../src/resources/transactions/list.ts'
import { borrow, withClient } from '../../kit/client.ts'
import { isSoak, strength } from '../../kit/strength.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'

// The blocks that each filter reads, for a page and for the exact total, in lists of 10,000 rows and of
// 50,000, in a soak of a million. 2,500 rows are created per day: a merchant grows in time.

const few = 10_000
const many = strength(50_000, 1_000_000)
const perDay = 2_500
const dayMs = 24 * 60 * 60 * 1_000
const end = Date.UTC(2026, 10, 1)
const moment = (days: number) => new Date(end - days * dayMs).toISOString()

/** Row n of a list was created n places before the end; one row in 5,000 is of a rare kind. */
const at = `to_timestamp(${end / 1_000}) - (n + 0.5) * interval '${dayMs / perDay} milliseconds'`
const isRare = 'n % 5000 = 1234'
const operator = "('Operator' || substr('ABCD', 1 + n % 4, 1))"
const rows = 'generate_series($2::int - 1, 0, -1) AS n'
const phone = "'+2237' || lpad((n % 1000)::text, 7, '0')"
const inserts = [
  `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
     reference, request_data, settled_amount, payment_link_id, created_at)
   SELECT $1::int, CASE n % 7 WHEN 0 THEN 'deposit' ELSE 'pay' END::transaction_type, ${operator}::provider,
     ${phone}, 1000 + n % 500 * 100, s.status, 'r-' || n, '{}',
     CASE s.status WHEN 'success' THEN 1000 + n % 500 * 100 END,
     CASE WHEN n % 7 <> 0 AND n BETWEEN 5000 AND 5039 THEN $1::int END, ${at}
   FROM ${rows}, LATERAL (SELECT CASE WHEN ${isRare} THEN 'pending'
     ELSE (ARRAY['failed', 'success', 'success', 'success'])[1 + n % 5 % 4] END::transaction_status AS status
   ) AS s`,
  `INSERT INTO transaction_count_change (merchant_id, bucket, transaction_type, payment_method, status, hour,
     payment_link_id, n, amount, settled_amount)
   SELECT merchant_id, id / 1024, transaction_type, payment_method, status,
     date_trunc('hour', created_at, 'UTC'), payment_link_id, count(*), sum(amount),
     coalesce(sum(settled_amount), 0)
   FROM transaction WHERE merchant_id = $1 AND $2 > 0 GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 6`,
  `INSERT INTO payout (merchant_id, payment_method, destination_phone, amount, status, reference, send_at,
     approval, maker, request_data, created_at, settled_amount)
   SELECT $1, ${operator}::provider, ${phone}, 1000 + n % 500 * 100,
     CASE WHEN ${isRare} THEN 'failed' ELSE 'completed' END::payout_status, 'p-' || n, now(), 'not_required',
     CASE WHEN ${isRare} THEN 'member:2' ELSE 'member:1' END, '{}', ${at},
     CASE WHEN NOT (${isRare}) THEN 1000 + n % 500 * 100 END FROM ${rows}`,
  `INSERT INTO payout_count (merchant_id, payment_method, status, n)
   SELECT merchant_id, payment_method, status, count(*) FROM payout
   WHERE merchant_id = $1 AND $2 > 0 GROUP BY 1, 2, 3`,
  `INSERT INTO batch (merchant_id, status, total_amount, maker, created_at, processed_at,
     cancel_requested_at)
   SELECT $1, CASE WHEN ${isRare} THEN 'cancelled' ELSE 'draft' END::batch_status, 1000 + n % 500 * 100,
     CASE WHEN ${isRare} THEN 'member:2' ELSE 'member:1' END, ${at}, CASE WHEN ${isRare} THEN ${at} END,
     CASE WHEN ${isRare} THEN ${at} END FROM ${rows}`,
  `INSERT INTO payment_link (merchant_id, title, amount, url_slug, is_active, created_at, updated_at)
   SELECT $1, 'L' || n, 1000 + n % 500 * 100, 'link-' || $1::int || '-' || n,
     true, ${at}, now() FROM ${rows}`,
  `INSERT INTO beneficiary (merchant_id, name, account, payment_method, category, created_at)
   SELECT $1, 'B' || n, ${phone}, ${operator}::payout_method,
     CASE WHEN ${isRare} THEN 'supplier' ELSE 'customer' END::beneficiary_category, ${at} FROM ${rows}`,
]

/** A statement that may take longer than those of the service. */
const slowly = (text: string, values: unknown[] = []) => ({ text, values, query_timeout: 600_000 })

let service: TestApp
/** The merchant with few rows, and the one with many. */
let shops: readonly TestMerchant[]
beforeAll(async () => {
  service = await startTestApp()
  const { owner, database } = service.database
  while (await compactCounts(database.pool));
  await withClient(owner, async (client) => {
    await client.query(`SET session_replication_role = replica; SET synchronous_commit = off;
      SET statement_timeout = 0; SET maintenance_work_mem = '256MB'`)
    const made: TestMerchant[] = []
    for (const size of [few, many]) {
      const shop = await service.merchant()
      made.push(shop)
      for (const text of inserts) await client.query(slowly(text, [shop.merchantId, size]))
      await client.query(slowly('SELECT compact_transaction_counts(2147483647)'))
    }
    shops = made
    await client.query(slowly('VACUUM ANALYZE'))
  })
}, 900_000)
afterAll(() => service.close())

interface Statement {
  /** Only a statement with a name is kept by its session, with a plan for all values. */
  name?: string | undefined
  text: string
  values?: unknown[]
}

/** Statements that read a list. */
const lists = /\b(transaction|payout|batch|payment_link|beneficiary)/i

/** Runs a document, and returns the statements that ran on behalf of the merchant. */
async function statementsOf(document: string, shop: TestMerchant): Promise<Statement[]> {
  const seen: Statement[] = []
  const { query: original } = pg.Client.prototype as { query: (...given: unknown[]) => unknown }
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...given: unknown[]
  ) {
    const statement = given[0] as Statement | string
    if (typeof statement === 'object' && lists.test(statement.text)) {
      const values = statement.values ?? (given[1] as unknown[])
      // Jobs read lists of all merchants.
      if (values.includes(shop.merchantId)) seen.push({ name: statement.name, text: statement.text, values })
    }
    return Reflect.apply(original, this, given)
  })
  try {
    const { body } = await service.graphql(document, {}, shop.token)
    expect(body['errors']).toBeUndefined()
  } finally {
    spy.mockRestore()
  }
  return seen
}

function literalOf(value: unknown): string {
  if (value == null) return 'NULL'
  if (Array.isArray(value)) return pg.escapeLiteral(`{${value.join(',')}}`)
  return pg.escapeLiteral(
    value instanceof Date ? value.toISOString() : `${value as string | number | bigint}`,
  )
}

/** Counts the blocks that a document reads, with the plans for its values or with those for all values. */
async function blocksOf(document: string, shop: TestMerchant): Promise<number> {
  const statements = await statementsOf(document, shop)
  expect(statements.length).toBeGreaterThan(0)
  const client = await borrow(service.database.owner)
  const blocks = { force_custom_plan: 0, force_generic_plan: 0 }
  await client.query(`SET ROLE payments_merchant; SET app.merchant = '${shop.merchantId}'`)
  for (const { name, text, values = [] } of statements) {
    await client.query(`PREPARE read AS ${text}`)
    const given = values.length > 0 ? `(${values.map(literalOf).join(', ')})` : ''
    // A session reads the catalogue before it runs a statement or a function for the first time.
    await client.query(`EXECUTE read ${given}`)
    const modes = name
      ? (['force_custom_plan', 'force_generic_plan'] as const)
      : (['force_custom_plan'] as const)
    for (const mode of modes) {
      await client.query(`SET plan_cache_mode = ${mode}`)
      const { rows: plans } = await client.query(
        `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE read ${given}`,
      )
      const plan = plans[0]['QUERY PLAN'][0].Plan
      blocks[mode] += plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
    }
    await client.query('DEALLOCATE read')
  }
  client.release(true)
  return Math.max(blocks.force_custom_plan, blocks.force_generic_plan)
}

const day = `createdFrom: "${moment(2.3)}", createdTo: "${moment(1.1)}"`
const longAgo = `createdFrom: "${moment(few / perDay - 0.1)}", createdTo: "${moment(few / perDay - 0.5)}"`
const untilLongAgo = `createdTo: "${moment(few / perDay - 0.5)}"`
const ever = `createdFrom: "${moment(900)}"`
interface Case {
  list: string
  filter?: string
  /** Arguments beside the filter. */
  args?: string
  /** The parts that grow with the list, because no count or index serves them. */
  grows?: readonly ('page' | 'total')[]
}

const amounts = 'amountMin: 4000, amountMax: 6000'
const transactions: readonly Omit<Case, 'list'>[] = [
  {},
  { filter: 'status: [SUCCESS]' },
  { filter: 'status: [PENDING]', grows: ['page'] },
  { filter: 'status: [PENDING, FAILED], paymentMethod: [OperatorA, OperatorB]', grows: ['page'] },
  { filter: day },
  { filter: `${day}, status: [SUCCESS], paymentMethod: [OperatorA]` },
  { filter: `${day}, status: [PENDING]` },
  { filter: ever, grows: ['total'] },
  { filter: `${ever}, status: [SUCCESS], paymentMethod: [OperatorA]`, grows: ['page', 'total'] },
  { filter: `${ever}, status: [PENDING]`, grows: ['page', 'total'] },
  { filter: 'reference: "r-77"' },
  { filter: 'customerPhone: "+22370000077"' },
  { filter: amounts, grows: ['total'] },
  { filter: `${day}, ${amounts}` },
  { filter: longAgo },
  { filter: 'amountMin: 50900' },
  { filter: 'search: "r-777"' },
  { filter: 'search: "+2237"', grows: ['total'] },
  { filter: 'search: "nothing"' },
  // 34 payments are by a link whose number is that of the merchant.
  { filter: 'paymentLink: "MERCHANT"' },
  { filter: 'paymentLink: "MERCHANT", amountMin: 1000' },
  { filter: `paymentLink: "MERCHANT", ${ever}` },
  { args: 'orderBy: AMOUNT_DESC' },
  { args: 'orderBy: AMOUNT_ASC, after: "30000-20"' },
  { args: 'orderBy: CREATED_AT_ASC' },
]
const payouts: readonly Omit<Case, 'list'>[] = [
  {},
  { filter: 'status: [COMPLETED]' },
  { filter: 'status: [FAILED]' },
  { filter: day },
  { filter: longAgo },
  { filter: untilLongAgo, grows: ['total'] },
  { filter: `${day}, status: [FAILED]` },
  { filter: ever, grows: ['total'] },
  { filter: 'reference: "p-77"' },
  { filter: 'createdBy: "member:1"', grows: ['total'] },
  { filter: 'createdBy: "member:2"' },
  { filter: 'search: "p-777"' },
  { args: 'orderBy: AMOUNT_DESC' },
  { args: 'orderBy: AMOUNT_ASC, after: "30000-20"' },
  { filter: amounts, grows: ['total'] },
]
const cases: readonly Case[] = [
  ...transactions.map((each) => ({ list: 'transactions', ...each })),
  ...payouts.map((each) => ({ list: 'payouts', ...each })),
  { list: 'batches', grows: ['total'] },
  { list: 'batches', filter: 'status: [CANCELLED]', grows: ['page', 'total'] },
  { list: 'batches', filter: day },
  { list: 'batches', filter: longAgo, grows: ['page'] },
  { list: 'batches', filter: 'createdBy: "member:2"' },
  { list: 'batches', args: 'orderBy: AMOUNT_DESC', grows: ['total'] },
  { list: 'paymentLinks', grows: ['total'] },
  { list: 'paymentLinks', filter: day },
  { list: 'paymentLinks', filter: longAgo, grows: ['page'] },
  { list: 'paymentLinks', filter: 'search: "link-1-7"' },
  { list: 'beneficiaries', grows: ['total'] },
  { list: 'beneficiaries', filter: 'category: [SUPPLIER]', grows: ['page', 'total'] },
  { list: 'beneficiaries', filter: day, grows: ['page', 'total'] },
]

const ofEach = async (document: string) => {
  const blocks: number[] = []
  for (const shop of shops) {
    const own = document.replace('MERCHANT', String(shop.merchantId))
    blocks.push(await blocksOf(own, shop))
  }
  return blocks
}

test.each(cases)('$list with $filter $args', async ({ list, filter, args: more, grows = [] }) => {
  const given = [...(filter ? [`filter: {${filter}}`] : []), ...(more ? [more] : [])]
  const args = given.length > 0 ? `(${given.join(', ')})` : ''
  const page = await ofEach(`{ ${list}${args} { nodes { createdAt } } }`)
  const total = await ofEach(`{ ${list}${args} { totalCount } }`)
  const read = { list, args, page, total }
  if (isSoak) process.stdout.write(`${JSON.stringify(read)}\n`)
  const grown = Object.entries({ page, total }).filter(([, [small = 0, large = 0]]) => large > small * 3 + 20)
  expect(grown.filter(([part]) => !grows.some((each) => each === part))).toEqual([])
})

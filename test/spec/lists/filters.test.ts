import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestApp, type TestMerchant } from '../../kit/app.ts'
import { customer } from '../../kit/fixture.ts'

// Filters by several values, by ranges and by author, over both doors.

// The rows of the lists have no money behind them, so the ledger is not proved here.
const fixture = await startTestApp()
afterAll(() => fixture.close())
const { owner } = fixture.database
let shop: TestMerchant
const dayMs = 24 * 60 * 60 * 1_000
const dayOf = (n: number) => new Date(Date.UTC(2026, 0, n, 12))

/** Ten rows of each kind, one per day from the first of January 2026 on, of 1,000 to 10,000 francs. */
beforeAll(async () => {
  shop = await fixture.merchant()
  const insert = (sql: string) => owner.query(sql, [shop.merchantId, dayOf(1)])
  const at = "$2::timestamptz + (n - 1) * interval '1 day'"
  await insert(`INSERT INTO payment_link (merchant_id, title, amount, url_slug, created_at, updated_at)
    SELECT $1, 'L' || n, n * 1000, 'link-' || n, ${at}, now() FROM generate_series(1, 10) AS n`)
  await insert(`INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone,
      amount, status, reference, request_data, settled_amount, payment_link_id, created_at)
    SELECT $1, 'pay', ('Operator' || substr('ABCD', 1 + n % 4, 1))::provider, '+22370000001', n * 1000,
      s.status, 'f-' || n, '{}', CASE s.status WHEN 'success' THEN n * 1000 END,
      (SELECT id FROM payment_link WHERE merchant_id = $1 AND title = 'L' || 1 + n % 4), ${at}
    FROM generate_series(1, 10) AS n, LATERAL (
      SELECT (ARRAY['failed', 'expired', 'success'])[1 + n % 3]::transaction_status AS status) AS s`)
  await insert(`INSERT INTO payout (merchant_id, payment_method, destination_phone, amount, status, reference,
      send_at, approval, maker, request_data, created_at)
    SELECT $1, 'OperatorA', '+22370000001', n * 1000,
      (ARRAY['failed', 'cancelled'])[1 + n % 2]::payout_status, 'p-' || n, now(),
      'not_required', 'member:' || n % 3, '{}', ${at}
    FROM generate_series(1, 10) AS n`)
  await insert(`INSERT INTO batch (merchant_id, status, total_amount, maker, created_at)
    SELECT $1, 'draft', n * 1000, 'member:' || n % 3, ${at} FROM generate_series(1, 10) AS n`)
  await insert(`INSERT INTO beneficiary (merchant_id, name, account, payment_method, category, created_at)
    SELECT $1, 'B' || n, '+22370000001', ('Operator' || substr('ABCD', 1 + n % 4, 1))::payout_method,
      (ARRAY['customer', 'employee', 'supplier'])[1 + n % 3]::beneficiary_category, ${at}
    FROM generate_series(1, 10) AS n`)
})

/** The days of the rows that a filter selects; the total must be their number. */
async function listed(list: string, filter: string): Promise<number[]> {
  const document = `{ ${list}(filter: {${filter}}) { totalCount nodes { createdAt } } }`
  const { body } = await fixture.graphql(document, {}, shop.token)
  expect(body['errors']).toBeUndefined()
  const { totalCount, nodes } = body['data'][list]
  expect(totalCount).toBe(nodes.length)
  return nodes.map(({ createdAt }: { createdAt: string }) => dayNumber(createdAt)).toReversed()
}

async function listedInRest(path: string, query: string): Promise<number[]> {
  const { status, body } = await fixture.rest('GET', `/${path}?${query}`, { token: shop.token })
  expect(status).toBe(200)
  const rows = Array.isArray(body['data']) ? body['data'] : body['data'][path]
  return rows.map((row: { created_at: string }) => dayNumber(row.created_at)).toReversed()
}

const dayNumber = (time: string) => 1 + (new Date(time).getTime() - dayOf(1).getTime()) / dayMs
const days = `createdFrom: "${dayOf(3).toISOString()}", createdTo: "${dayOf(5).toISOString()}"`
const daysInRest = `created_from=${dayOf(3).toISOString()}&created_to=${dayOf(5).toISOString()}`

test.each([
  ['transactions', 'status: [FAILED, EXPIRED]', [1, 3, 4, 6, 7, 9, 10]],
  ['transactions', 'status: FAILED', [3, 6, 9]],
  ['transactions', 'paymentMethod: [OperatorA, OperatorB], transactionType: [PAY, DEPOSIT]', [1, 4, 5, 8, 9]],
  ['transactions', days, [3, 4, 5]],
  ['transactions', `${days}, status: [SUCCESS, FAILED]`, [3, 5]],
  ['transactions', 'amountMin: 4000, amountMax: 6000', [4, 5, 6]],
  ['payouts', 'status: [CANCELLED]', [1, 3, 5, 7, 9]],
  ['payouts', `${days}, amountMin: 4000`, [4, 5]],
  ['payouts', 'createdBy: "member:2"', [2, 5, 8]],
  ['payouts', 'paymentMethod: [BankTransfer]', []],
  ['batches', 'status: [DRAFT, FAILED], amountMax: 2000', [1, 2]],
  ['batches', `${days}, createdBy: "member:1"`, [4]],
  ['beneficiaries', 'category: [EMPLOYEE, SUPPLIER], paymentMethod: [OperatorA, OperatorC]', [2, 4, 8, 10]],
  ['beneficiaries', days, [3, 4, 5]],
  ['paymentLinks', `${days}, amountMax: 4000`, [3, 4]],
  // A date as an upper bound is its whole day, in UTC or in its own zone.
  ...['transactions', 'payouts', 'batches', 'beneficiaries', 'paymentLinks'].flatMap(
    (list): [string, string, number[]][] => [
      [list, 'createdFrom: "2026-01-03", createdTo: "2026-01-03"', [3]],
      [list, 'createdFrom: "2026-01-03", createdTo: "2026-01-05"', [3, 4, 5]],
      [list, 'createdFrom: "2026-01-03+13:00", createdTo: "2026-01-03+13:00"', [2]],
      [list, 'createdTo: "2026-01-03T00:00:00Z"', [1, 2]],
    ],
  ),
  ['transactions', 'createdTo: "2026-01-03", reference: "f-3"', [3]],
])('%s with %s', async (list, filter, expected) => {
  expect(await listed(list, filter)).toEqual(expected)
})

describe('transactions by payment link', () => {
  const idOf = async (title: string) => {
    const { rows } = await owner.query<{ id: number }>(
      'SELECT id FROM payment_link WHERE merchant_id = $1 AND title = $2',
      [shop.merchantId, title],
    )
    return String(rows[0]?.id)
  }

  test.each([
    ['', [1, 5, 9]],
    ['status: [FAILED, EXPIRED]', [1, 9]],
    ['amountMin: 5000', [5, 9]],
    ['paymentMethod: [OperatorA]', []],
    ['search: "7000 0001"', [1, 5, 9]],
    [days, [5]],
  ])('with %s', async (others, expected) => {
    const id = await idOf('L2')
    expect(await listed('transactions', `paymentLink: "${id}" ${others}`)).toEqual(expected)
    const globalId = Buffer.from(`PaymentLink:${id}`).toString('base64')
    expect(await listed('transactions', `paymentLink: "${globalId}" ${others}`)).toEqual(expected)
  })

  test('the sum of the amounts is that of its payments', async () => {
    const id = await idOf('L2')
    const document = `{ transactions(filter: { paymentLink: "${id}", status: EXPIRED }) { totalAmount } }`
    const { body } = await fixture.graphql(document, {}, shop.token)
    expect(body['data']).toEqual({ transactions: { totalAmount: 1_000 } })
  })

  test('a link that does not exist, another id, and a link of another merchant: none', async () => {
    const other = await fixture.merchant()
    const { rows } = await owner.query<{ id: number }>(
      `WITH link AS (
        INSERT INTO payment_link (merchant_id, title, amount, url_slug, created_at, updated_at)
        VALUES ($1, 'L2', 1000, 'foreign', now(), now()) RETURNING *
      )
      INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
        reference, request_data, payment_link_id, created_at)
      SELECT merchant_id, 'pay', 'OperatorA', '+22370000001', amount, 'failed', 'foreign', '{}', id,
        created_at
      FROM link RETURNING payment_link_id AS id`,
      [other.merchantId],
    )
    for (const id of ['999999', 'UGF5b3V0OjE=', 'nothing', String(rows[0]?.id)])
      for (const others of ['', 'amountMin: 1'])
        expect(await listed('transactions', `paymentLink: "${id}" ${others}`)).toEqual([])
  })

  test('REST takes `payment_link`', async () => {
    expect(await listedInRest('transactions', `payment_link=${await idOf('L2')}`)).toEqual([1, 5, 9])
  })
})

describe('REST', () => {
  test.each([
    ['transactions', 'status=failed,expired', [1, 3, 4, 6, 7, 9, 10]],
    ['transactions', 'status=failed', [3, 6, 9]],
    ['transactions', `${daysInRest}&payment_method=OperatorA,OperatorB`, [4, 5]],
    ['transactions', 'amount_min=4000&amount_max=6000', [4, 5, 6]],
    ['payouts', 'status=cancelled&created_by=member:1', [1, 7]],
    ['payouts', `${daysInRest}&amount_min=4000`, [4, 5]],
    ['beneficiaries', 'category=employee,supplier&payment_method=OperatorA,OperatorC', [2, 4, 8, 10]],
    ['payment-links', `${daysInRest}&amount_max=4000`, [3, 4]],
    ...['transactions', 'payouts', 'beneficiaries', 'payment-links'].flatMap(
      (path): [string, string, number[]][] => [
        [path, 'created_from=2026-01-03&created_to=2026-01-03', [3]],
        [path, 'created_from=2026-01-03%2B13:00&created_to=2026-01-03%2B13:00', [2]],
        [path, 'created_to=2026-01-03T00:00:00Z', [1, 2]],
      ],
    ),
  ])('GET /%s?%s', async (path, query, expected) => {
    expect(await listedInRest(path, query)).toEqual(expected)
  })

  test.each([
    ['status=paid', 'status must be one of '],
    ['status=failed,paid', 'status must be one of '],
    ['status=', 'status must be one of '],
    [`status=${Array.from({ length: 21 }, () => 'failed').join()}`, 'status must have 1 to 20 values.'],
    ['amount_min=-1', 'amount_min must be a number.'],
    ['amount_max=1.5', 'amount_max must be a number.'],
    [`customer_phone=${customer('11')}x`, 'customer_phone must be a mobile number in Mali.'],
    ['created_to=2026-02-30', 'created_to must be an ISO 8601 time with its zone'],
    ['created_from=0001-01-01T00:00:00%2B01:00', 'created_from must be in the years 1 to 9999, in UTC.'],
    ['created_from=2026-01-31T10:00:00+01:00', 'created_from must be an ISO 8601 time: in an address, write'],
  ])('refuses %s', async (query, message) => {
    const { status, body } = await fixture.rest('GET', `/transactions?${query}`, { token: shop.token })
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain(message)
  })
})

test.each(['transactions', 'payouts'])('the export of %s takes the same days', async (name) => {
  const both = 'created_from=2026-01-03&created_to=2026-01-04'
  const answer = await fetch(`${fixture.url}/merchant/api/exports/${name}.csv?${both}`, {
    headers: { Authorization: `Bearer ${shop.token}` },
  })
  const [head, ...rows] = (await answer.text()).trim().split('\r\n')
  const at = head?.split(',').indexOf('created_at') ?? -1
  expect(rows.map((row) => row.split(',')[at])).toEqual([dayOf(3).toISOString(), dayOf(4).toISOString()])
})

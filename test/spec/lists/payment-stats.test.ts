import { beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

// The figures of payments as a dashboard asks for them. `resources/payment-stats` holds every figure to its
// rows.

const fixture = await openFixture()
const shop = await fixture.merchant()
const other = await fixture.merchant()

const ask = async (document: string, variables: object = {}, { token } = shop) =>
  (await fixture.graphql(document, variables, token)).body
const today = fixture.app.services.clock.now().toISOString().slice(0, 10)
const figures = 'count amount settledAmount successRate medianMs p95Ms'
const none = { count: 0, amount: 0, settledAmount: 0, successRate: null, medianMs: null, p95Ms: null }

beforeAll(async () => {
  await fixture.fund(shop, 50_000)
  await fixture.paid(shop, { amount: 2_500, customer_phone: customer('00') })
  await fixture.paid(shop, { amount: 1_500, customer_phone: customer('02') })
  await fixture.paid(shop, { amount: 700, payment_method: 'OperatorB' })
  await fixture.deposit(shop)
  await fixture.rest('POST', '/payment-links', { token: shop.token, body: { title: 'Mil' } })
  await fixture.deposit(shop, { amount: 3_000, destination_phone: customer('00') }, undefined, '/payouts')
  const recipient = { name: 'Awa', account: customer('00'), amount: 4_000, payment_method: 'OperatorA' }
  const { body } = await fixture.rest('POST', '/bulk/batches', {
    token: shop.token,
    body: { recipients: [recipient, { ...recipient, account: customer('03') }] },
  })
  await fixture.rest('POST', `/bulk/batches/${body['data'].id}/process`, { token: shop.token, body: {} })
  await eventually(async () => {
    const open = await fixture.database.owner.query(
      `SELECT FROM transaction WHERE status IN ('pending', 'processing') AND payment_method <> 'OperatorB'
       UNION ALL SELECT FROM payout WHERE status IN ('pending', 'processing')
       UNION ALL SELECT FROM batch_recipient WHERE status IN ('pending', 'processing')`,
    )
    if (open.rowCount !== 0) throw new Error(`${open.rowCount} payments are open`)
  })
})

describe('figures of payments', () => {
  test('count every kind of payment, by each property', async () => {
    const { data, errors } = await ask(
      `query ($from: DateTime!) { paymentStats(from: $from, by: [TYPE, STATUS]) {
        timeZone total { count amount settledAmount successRate }
        buckets { start end count groups { type status paymentMethod failure count amount } } } }`,
      { from: today },
    )
    expect(errors).toBeUndefined()
    const { timeZone, total, buckets } = data.paymentStats
    expect(timeZone).toBe('Africa/Bamako')
    expect(total).toEqual({ count: 7, amount: 16_700, settledAmount: 10_500, successRate: 4 / 6 })
    const start = new Date(`${today}T00:00:00Z`)
    const end = new Date(start.getTime() + 86_400_000)
    expect(buckets[0]).toMatchObject({ start: start.toISOString(), end: end.toISOString() })
    const plain = { paymentMethod: null, failure: null, count: 1 }
    const groups = [
      { type: 'PAY', status: 'SUCCESS', amount: 2_500, ...plain },
      { type: 'PAY', status: 'FAILED', amount: 1_500, ...plain },
      { type: 'PAY', status: 'PENDING', amount: 700, ...plain },
      { type: 'DEPOSIT', status: 'SUCCESS', amount: 1_000, ...plain },
      { type: 'PAYOUT', status: 'SUCCESS', amount: 3_000, ...plain },
      { type: 'RECIPIENT', status: 'SUCCESS', amount: 4_000, ...plain },
      { type: 'RECIPIENT', status: 'FAILED', amount: 4_000, ...plain },
    ]
    // A payment may be made after midnight.
    const shown = buckets.flatMap((bucket: { groups: object[] }) => bucket.groups)
    expect(shown).toHaveLength(groups.length)
    expect(shown).toEqual(expect.arrayContaining(groups))
  })

  test('of links and batches are those of their payments; lists add up their amounts', async () => {
    const { data, errors } = await ask(
      `{ paymentLinks { nodes { stats { ${figures} } payments { totalCount totalAmount } } }
        batches { totalAmount nodes { stats { count amount settledAmount successRate }
          recipients { totalAmount } failed: recipients(filter: { status: FAILED }) { totalAmount }
          rich: recipients(filter: { amountMin: 4000 }) { totalCount totalAmount } } }
        transactions { totalAmount } paid: transactions(filter: { status: SUCCESS }) { totalAmount }
        rich: transactions(filter: { amountMin: 1500 }) { totalAmount }
        payouts { totalAmount } completed: payouts(filter: { status: COMPLETED }) { totalAmount }
        none: payouts(filter: { amountMax: 2999 }) { totalAmount } }`,
    )
    expect(errors).toBeUndefined()
    expect(data).toMatchObject({
      paymentLinks: { nodes: [{ stats: none, payments: { totalCount: 0, totalAmount: 0 } }] },
      batches: {
        totalAmount: 8_000,
        nodes: [
          {
            stats: { count: 2, amount: 8_000, settledAmount: 4_000, successRate: 0.5 },
            recipients: { totalAmount: 8_000 },
            failed: { totalAmount: 4_000 },
            rich: { totalCount: 2, totalAmount: 8_000 },
          },
        ],
      },
      transactions: { totalAmount: 5_700 },
      paid: { totalAmount: 3_500 },
      rich: { totalAmount: 4_000 },
      payouts: { totalAmount: 3_000 },
      completed: { totalAmount: 3_000 },
      none: { totalAmount: 0 },
    })
  })

  test('are those of the asked kinds and operators, with the reasons of failures', async () => {
    const { data } = await ask(
      `query ($from: DateTime!) {
        payments: paymentStats(from: $from, type: [PAY], by: [OPERATOR, FAILURE]) {
          total { count } buckets { groups { paymentMethod failure count successRate } } }
        byB: paymentStats(from: $from, paymentMethod: [OperatorB]) { total { count amount } } }`,
      { from: today },
    )
    expect(data.byB.total).toEqual({ count: 1, amount: 700 })
    expect(data.payments.total).toEqual({ count: 3 })
    const groups = data.payments.buckets.flatMap((bucket: { groups: object[] }) => bucket.groups)
    expect(groups).toEqual(
      expect.arrayContaining([
        { paymentMethod: 'OperatorA', failure: null, count: 1, successRate: 1 },
        { paymentMethod: 'OperatorA', failure: expect.stringMatching(/^PAYER_/), count: 1, successRate: 0 },
        { paymentMethod: 'OperatorB', failure: null, count: 1, successRate: null },
      ]),
    )
    expect(groups).toHaveLength(3)
  })

  test('have the time within which payments were settled', async () => {
    const { data } = await ask(`{ paymentStats(from: "${today}", type: [PAY]) { total { ${figures} } } }`)
    const { medianMs, p95Ms } = data.paymentStats.total
    const { rows } = await fixture.database.owner.query<{ ms: number }>(
      `SELECT extract(epoch FROM settled_at - created_at)::float8 * 1000 AS ms FROM transaction
       WHERE status = 'success' AND transaction_type = 'pay'`,
    )
    const [{ ms } = { ms: NaN }] = rows
    expect(medianMs).toBe(p95Ms)
    expect(medianMs).toBeGreaterThanOrEqual(ms)
    expect(medianMs).toBeLessThanOrEqual(Math.max(100, ms * 1.11 + 1))
  })

  test('of empty periods are zeros, and another merchant has none', async () => {
    const { data } = await ask(
      `{ paymentStats(from: "2026-01-30", to: "2026-02-01", groupBy: DAY, by: [TYPE]) { total { ${figures} }
        buckets { start ${figures} groups { count } } } }`,
    )
    expect(data.paymentStats.total).toEqual(none)
    expect(data.paymentStats.buckets).toEqual(
      ['2026-01-30', '2026-01-31', '2026-02-01'].map((day) => ({
        start: `${day}T00:00:00.000Z`,
        ...none,
        groups: [],
      })),
    )
    const theirs = await ask(`{ paymentStats(from: "2026-01-01") { total { ${figures} } } }`, {}, other)
    expect(theirs.data.paymentStats.total).toEqual(none)
  })

  test('begin at midnight in the time zone of the settings, or in the one that is asked for', async () => {
    const starts = async (args: string) => {
      const { data } = await ask(
        `{ paymentStats(from: "2026-03-07T12:00:00Z", to: "2026-03-09T12:00:00Z"${args}) {
          timeZone buckets { start } } }`,
        {},
        other,
      )
      const { timeZone, buckets } = data.paymentStats
      return [timeZone, ...buckets.map(({ start }: { start: string }) => start)]
    }
    const put = { token: other.token, body: { time_zone: 'America/New_York' } }
    expect((await fixture.rest('PUT', '/settings', put)).body['data']).toMatchObject(put.body)
    // Summer time begins on 8 March 2026 in New York.
    expect(await starts('')).toEqual([
      'America/New_York',
      '2026-03-07T05:00:00.000Z',
      '2026-03-08T05:00:00.000Z',
      '2026-03-09T04:00:00.000Z',
    ])
    expect(await starts(', groupBy: MONTH, timeZone: "Asia/Shanghai"')).toEqual([
      'Asia/Shanghai',
      '2026-02-28T16:00:00.000Z',
    ])
  })

  test('of a date are those of its day in the time zone, also where that day has no midnight', async () => {
    const { data } = await ask(
      `{ cairo: paymentStats(from: "2026-04-24", to: "2026-04-24", timeZone: "Africa/Cairo") {
          buckets { start end } }
        hours: paymentStats(from: "2026-11-01", to: "2026-11-01", groupBy: HOUR, timeZone: "America/Havana") {
          buckets { start } } }`,
    )
    expect(data.cairo.buckets).toEqual([
      { start: '2026-04-23T22:00:00.000Z', end: '2026-04-24T21:00:00.000Z' },
    ])
    const hours = data.hours.buckets.map(({ start }: { start: string }) => start)
    expect([hours.length, hours[0]]).toEqual([25, '2026-11-01T04:00:00.000Z'])
  })

  test('of many long questions in one operation are refused', async () => {
    const year = 'from: "2025-01-01", to: "2025-12-31", groupBy: HOUR'
    const { data, errors } = await ask(
      `{ first: paymentStats(${year}) { total { count } } second: paymentStats(${year}) { total { count } }
        third: paymentStats(from: "2025-01-01", to: "2025-12-31") { total { count } } }`,
    )
    expect(data).toEqual({ first: { total: { count: 0 } }, second: null, third: null })
    expect(errors.map(({ path }: { path: string[] }) => path)).toEqual([['second'], ['third']])
    expect(errors[0].extensions).toMatchObject({ code: 'INVALID_INPUT', problems: [{ field: 'to' }] })
  })

  test('need the scope of amounts', async () => {
    const { body } = await fixture.rest('POST', '/auth', {
      headers: { 'X-API-KEY': shop.apiKey, 'X-API-SECRET': shop.apiSecret },
      body: { scopes: ['payment_links'] },
    })
    const token = String(body['data'].token)
    const links = (fields: string) => `{ paymentLinks { nodes { ${fields} } } }`
    const link = { title: 'Mil', payments: { totalCount: 0 } }
    const allowed = await ask(links('title payments { totalCount }'), {}, { ...shop, token })
    expect(allowed.data).toEqual({ paymentLinks: { nodes: [link] } })
    for (const document of [
      `{ paymentStats(from: "${today}") { total { count } } }`,
      links('stats { count }'),
      links('payments { totalAmount }'),
    ]) {
      const { errors } = await ask(document, {}, { ...shop, token })
      expect(errors[0].extensions).toMatchObject({ code: 'FORBIDDEN', requiredScopes: ['balance'] })
    }
  })

  test('reach to the last moment of their years', async () => {
    const { data } = await ask(
      `{ paymentStats(from: "9998-12-31", to: "9998-12-31", groupBy: MONTH) { buckets { start end } } }`,
    )
    expect(data.paymentStats.buckets).toEqual([
      { start: '9998-12-01T00:00:00.000Z', end: '9999-01-01T00:00:00.000Z' },
    ])
  })

  test.each([
    ['from', 'from: "1999-12-31", to: "2000-01-02"', 'the years 2000 to 9998'],
    ['to', 'from: "9998-12-30", to: "9999-01-01"', 'the years 2000 to 9998'],
    ['to', 'from: "2025-01-01", to: "2026-02-06", groupBy: HOUR', 'at most 400 days'],
    ['to', 'from: "2000-01-01", to: "2028-02-06"', 'at most 10000 periods'],
    ['to', 'from: "2010-01-01", to: "2024-01-01", by: [STATUS]', 'at most 10000 periods'],
    ['to', 'from: "2026-01-02T00:00:00Z", to: "2026-01-02T00:00:00Z"', 'later than'],
    ['from', 'from: "2100-01-01"', 'in the past'],
    // At that time, the day has not begun in New York.
    ['to', 'from: "2026-03-02", to: "2026-03-02T03:00:00Z", timeZone: "America/New_York"', 'later than'],
    ['timeZone', 'from: "2026-01-01", timeZone: "Mars/Olympus"', 'Africa/Bamako'],
    ['timeZone', 'from: "2026-01-01", timeZone: "+01:00"', 'Africa/Bamako'],
    ['timeZone', 'from: "2026-01-01", timeZone: "Africa/Bamako2"', 'Africa/Bamako'],
    ['timeZone', 'from: "2026-01-01", timeZone: "Asia/Kolkata"', 'whole hours'],
  ])('are refused by the name of the argument: %s, %s', async (field, args, words) => {
    const { data, errors } = await ask(`{ paymentStats(${args}) { total { count } } }`)
    expect(data).toEqual({ paymentStats: null })
    expect(errors[0].extensions).toMatchObject({ code: 'INVALID_INPUT', problems: [{ field }] })
    expect(errors[0].extensions.problems[0].message).toContain(words)
  })
})

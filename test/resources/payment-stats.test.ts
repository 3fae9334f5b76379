import { beforeAll, expect, test } from 'vitest'
import type { Context } from '../../src/context.ts'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import { compactCounts, sumLinkPayments } from '../../src/resources/transactions/list.ts'
import { type PaymentFigures, readBatchStats, readLinkStats } from '../../src/resources/stats/figures.ts'
import { compactDisbursements, readPaymentStats } from '../../src/resources/stats/read.ts'
import { useTestDatabase } from '../kit/database.ts'
import { borrow } from '../kit/client.ts'
import { paymentsSql, wrongFigures } from '../kit/payment-figures.ts'
import { beginnings, linksOf, randomPayments, spanMs } from '../kit/random-payments.ts'
import { randomFrom } from '../kit/random.ts'
import { seed } from '../kit/seeds.ts'
import { strength } from '../kit/strength.ts'

// The figures of payments, held to the rows themselves: over random histories of every kind of payment, in
// several time zones, before and after the changes are added to the figures.

const db = await useTestDatabase()
const { pool } = db.database
const random = randomFrom(seed)
const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item
const { openMerchant, addPayments } = randomPayments(db.owner, random)
const hourMs = 60 * 60 * 1_000
const zones = [
  'Africa/Bamako',
  'UTC',
  'America/New_York',
  'Asia/Shanghai',
  // Their summer time begins or ends at midnight.
  'Africa/Cairo',
  'Asia/Beirut',
  'Atlantic/Azores',
  'America/Havana',
]

interface Payment {
  type: 'pay' | 'deposit' | 'payout' | 'recipient'
  paymentMethod: string
  status: string
  failure: string | null
  at: Date
  amount: bigint
  settledAmount: bigint
  settleMs: number | null
}

const rowsOf = `
  SELECT type, payment_method AS "paymentMethod", status, failure_reason AS failure, at, amount,
    settled_amount AS "settledAmount", extract(epoch FROM settled_at - begun)::float8 * 1000 AS "settleMs",
    payment_link_id AS link
  FROM (${paymentsSql}) AS payment WHERE merchant_id = $1`

let merchantId: number
let neighbour: number

beforeAll(async () => {
  merchantId = await openMerchant()
  neighbour = await openMerchant()
})

// The periods, written here by the local time of each payment, without SQL.
const units = ['HOUR', 'DAY', 'WEEK', 'MONTH'] as const
type Unit = (typeof units)[number]

/** Names the period of a moment in a time zone: the local hour with its offset, day, Monday or month. */
function periodOf(at: Date, unit: Unit, timeZone: string): string {
  const format = { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' } as const
  const day = new Intl.DateTimeFormat('en-CA', format).format(at)
  if (unit === 'MONTH') return day.slice(0, 7)
  if (unit === 'HOUR') return new Date(Math.floor(at.getTime() / hourMs) * hourMs).toISOString()
  if (unit === 'DAY') return day
  const monday = new Date(`${day}T00:00:00Z`)
  monday.setUTCDate(monday.getUTCDate() - ((monday.getUTCDay() + 6) % 7))
  return monday.toISOString().slice(0, 10)
}

/** Rounds a time up to three digits of a power of the 24th root of ten. */
function classOf(ms: number): bigint {
  for (let nth = 0; ; nth += 1) {
    const step = Math.round(100 * 10 ** ((nth % 24) / 24)) * 10 ** Math.floor(nth / 24)
    if (step >= Math.round(ms)) return BigInt(step)
  }
}

/** Computes figures from the payments themselves; a percentile is the value of the nearest rank. */
function figuresOf(payments: readonly Payment[]): PaymentFigures {
  const sum = (values: bigint[]) => values.reduce((all, value) => all + value, 0n)
  const times = payments.flatMap(({ settleMs }) => settleMs ?? []).toSorted((a, b) => a - b)
  const rank = (part: number) => {
    const ms = times[Math.ceil((part * times.length) / 100) - 1]
    return ms === undefined ? null : classOf(ms)
  }
  return {
    count: BigInt(payments.length),
    amount: sum(payments.map(({ amount }) => amount)),
    settledAmount: sum(payments.map(({ settledAmount }) => settledAmount)),
    succeeded: BigInt(payments.filter(({ status }) => status === 'success').length),
    ended: BigInt(payments.filter(({ status }) => !['pending', 'processing'].includes(status)).length),
    medianMs: rank(50),
    p95Ms: rank(95),
  }
}

function grouped(payments: readonly Payment[], keyOf: (payment: Payment) => string) {
  return Map.groupBy(payments, keyOf)
}

const properties = {
  operator: 'paymentMethod',
  status: 'status',
  type: 'type',
  failure: 'failure',
} as const
type Property = keyof typeof properties

const before = (at: Date) => new Date(at.getTime() - 1)

/** The parts of the context that the readers use. */
const contextOf = () =>
  ({
    actor: { merchantId },
    database: db.database,
    clock: { now: () => new Date() },
    loaders: new Map(),
  }) as unknown as Context

/** Asks a random question, and holds every figure of the answer to the rows. */
async function compare(): Promise<void> {
  const { rows } = await db.owner.query<Payment>(rowsOf, [merchantId])
  const unit = pick(units)
  const timeZone = pick(zones)
  const from = new Date(pick(beginnings) + Math.floor(random() * spanMs) - 48 * hourMs)
  const to = new Date(from.getTime() + 1 + Math.floor(random() * spanMs))
  const areDays = random() < 0.3
  const by = (Object.keys(properties) as Property[]).filter(() => random() < 0.4)
  const type = random() < 0.4 ? [pick(['pay', 'payout', 'recipient'] as const), 'deposit' as const] : null
  const paymentMethod = random() < 0.3 ? ['OperatorB' as const] : null
  const question = {
    from: areDays ? from.toISOString().slice(0, 10) : from,
    to: areDays ? to.toISOString().slice(0, 10) : to,
    groupBy: unit.toLowerCase() as Lowercase<Unit>,
    by,
    type,
    paymentMethod,
    timeZone,
  }
  const stats = await asMerchant(merchantId, () => readPaymentStats(contextOf(), question, true))
  const where = JSON.stringify(question)
  const first = stats.buckets[0]?.start ?? to
  const end = stats.buckets.at(-1)?.end ?? from
  // A day is written as its noon in UTC, whose date is the same in a time zone of this list.
  const moment = (day: Date) => new Date(`${day.toISOString().slice(0, 10)}T12:00:00Z`)
  const asDay = unit === 'HOUR' ? 'DAY' : unit
  const [turn, zone] = areDays ? [asDay, 'UTC'] : [unit, timeZone]
  const begun = periodOf(areDays ? moment(from) : from, turn, zone)
  const ended = periodOf(areDays ? moment(to) : before(to), turn, zone)
  expect(periodOf(first, turn, timeZone), where).toBe(begun)
  expect(periodOf(before(first), turn, timeZone), where).not.toBe(begun)
  expect(periodOf(before(end), turn, timeZone), where).toBe(ended)
  expect(periodOf(end, turn, timeZone), where).not.toBe(ended)
  expect(stats.buckets.map(({ start }) => start).slice(1), where).toEqual(
    stats.buckets.map(({ end: next }) => next).slice(0, -1),
  )
  const asked = rows.filter(
    (row) =>
      row.at >= first &&
      row.at < end &&
      (!type || type.some((one) => one === row.type)) &&
      (!paymentMethod || paymentMethod.some((one) => one === row.paymentMethod)),
  )
  const periods = grouped(asked, ({ at }) => periodOf(at, unit, timeZone))
  expect(stats.total, where).toEqual(figuresOf(asked))
  for (const { start, end: _end, groups, ...figures } of stats.buckets) {
    const payments = periods.get(periodOf(start, unit, timeZone)) ?? []
    expect(figures, `${where} ${start.toISOString()}`).toEqual(figuresOf(payments))
    const keyOf = (one: Record<'type' | 'paymentMethod' | 'status' | 'failure', string | null>) =>
      by.map((name) => one[properties[name]] ?? '').join()
    const expected = by.length === 0 ? [] : [...grouped(payments, keyOf)]
    const shown = groups.map(
      ({ type: _type, paymentMethod: _operator, status: _status, failure: _failure, ...own }) => own,
    )
    expect(new Map(groups.map((group, nth) => [keyOf(group), shown[nth]])), where).toEqual(
      new Map(expected.map(([key, own]) => [key, figuresOf(own)])),
    )
    periods.delete(periodOf(start, unit, timeZone))
  }
  // Each payment stands in one period, and no two periods have the same name.
  expect([...periods.keys()]).toEqual([])
}

/** Holds the figures of links and of a batch to their rows. */
async function compareSubjects(): Promise<void> {
  const ask = <Result>(read: (ctx: Context) => Promise<Result>) =>
    asMerchant(merchantId, () => read(contextOf()))
  const { rows } = await db.owner.query<Payment & { link: number | null }>(rowsOf, [merchantId])
  const links = [...linksOf(merchantId), ...linksOf(neighbour)]
  const figures = await ask((ctx) => Promise.all(links.map((link) => readLinkStats(ctx, link))))
  expect(figures).toEqual(links.map((one) => figuresOf(rows.filter(({ link }) => link === one))))
  const statuses = pick([null, ['success'], ['failed', 'expired']] as const)
  const sums = await ask((ctx) => Promise.all(links.map((link) => sumLinkPayments(ctx, link, statuses))))
  const counted = rows.filter(({ status }) => !statuses || statuses.some((one) => one === status))
  expect(sums).toEqual(
    links.map((one) => {
      const { count, amount } = figuresOf(counted.filter(({ link }) => link === one))
      return { count: Number(count), amount }
    }),
  )
  const { rows: recipients } = await db.owner.query<Payment>(
    `SELECT CASE WHEN reversed_at IS NOT NULL THEN 'reversed' ELSE status::text END AS status, amount,
       coalesce(settled_amount, 0) AS "settledAmount", CASE WHEN status = 'success' AND reversed_at IS NULL
         THEN extract(epoch FROM settled_at - sent_at)::float8 * 1000 END AS "settleMs"
     FROM batch_recipient WHERE batch_id = $1`,
    [merchantId],
  )
  const batches = await ask((ctx) =>
    Promise.all([merchantId, neighbour].map((id) => readBatchStats(ctx, id))),
  )
  expect(batches).toEqual([figuresOf(recipients), figuresOf([])])
}

test('every figure equals the sum of its rows, before and after changes are added', async () => {
  await addPayments(neighbour, 40)
  for (let round = 0; round < strength(4, 60); round += 1) {
    await addPayments(merchantId, 50)
    for (let question = 0; question < 10; question += 1) await compare()
    await compareSubjects()
    if (round % 2 === 0) await compactCounts(pool)
    if (round % 3 === 0) await compactDisbursements(pool, 25)
    expect(await wrongFigures(db.owner)).toEqual([])
  }
})

test('half of the times are at most the median, and 95 of 100 at most the 95th', async () => {
  const merchant = await openMerchant()
  await db.owner.query(
    `WITH made AS (
       INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
         reference, request_data, created_at)
       SELECT $1, 'pay', 'OperatorA', '+22370000001', 500, 'pending', 'time-' || n, '{}', $2
       FROM generate_series(1, 100) AS n RETURNING id
     ) SELECT`,
    [merchant, new Date(beginnings[0] as number)],
  )
  await db.owner.query(
    `UPDATE transaction t SET status = 'success', settled_amount = 500, settled_at = t.created_at +
       CASE WHEN r.nth < 50 THEN interval '100 ms' WHEN r.nth < 95 THEN interval '200 ms'
         ELSE interval '1 second' END
     FROM (SELECT id, row_number() OVER (ORDER BY id) AS nth FROM transaction WHERE merchant_id = $1) AS r
     WHERE r.id = t.id`,
    [merchant],
  )
  const day = '2026-03-22'
  const ask = { from: day, to: day, groupBy: 'day' as const, by: [] }
  const ctx = { ...contextOf(), actor: { merchantId: merchant } } as unknown as Context
  const { total } = await asMerchant(merchant, () => readPaymentStats(ctx, ask, true))
  expect(total).toMatchObject({ count: 100n, medianMs: 215n, p95Ms: 1_000n })
})

test.each([
  ['payment_figure', 'n = n + 1'],
  ['payment_figure', 'amount = amount + 1'],
  ['payment_figure', 'settled_amount = settled_amount - 1'],
  ['settle_time', 'n = n + 1'],
  ['link_figure', 'amount = amount + 1'],
])('the proof of the figures notices in %s: %s', async (table, change) => {
  const client = await borrow(db.owner)
  await client.query('BEGIN')
  await client.query(`UPDATE ${table} SET ${change} WHERE n > 0`)
  const wrong = await wrongFigures(client)
  await client.query('ROLLBACK')
  client.release()
  expect(wrong).not.toEqual([])
})

import { createClient } from 'graphql-sse'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { globalId } from '../../../src/shared/ids.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { eventually } from '../../kit/eventually.ts'
import { openFixture } from '../../kit/fixture.ts'
import { settleMany } from '../../kit/money.ts'
import { payBy } from '../../kit/money-links.ts'
import { day, payoutsOn } from '../../kit/payouts.ts'

// Streams of one object, of some statuses or of some types: each brings what the whole log has of it.

const fixture = await openFixture()
const { pool } = fixture.database.database
const { payOut, ahead, cancel, shop: fundedShop } = payoutsOn(fixture)
const { draft, process, ended } = bulkOn(fixture)

interface Logged {
  sequence: number
  type: string
  data: Record<string, unknown>
}

let shop: TestMerchant
let log: Logged[]
const ids = { paid: 0, failed: 0, payout: 0, batch: 0, link: 0 }

beforeAll(async () => {
  shop = await fundedShop()
  const { token } = shop
  ids.paid = Number((await fixture.paid(shop, { reference: 'paid' }))['transaction_id'])
  ids.failed = Number((await fixture.paid(shop, { reference: 'failed' }))['transaction_id'])
  await settleMany(pool, [
    { id: BigInt(ids.paid), to: 'success' },
    { id: BigInt(ids.failed), to: 'failed' },
  ])
  ids.payout = (await payOut(shop, { reference: 'paid', scheduled_at: ahead(day) })).body['data'].id
  await payOut(shop, { reference: 'other', scheduled_at: ahead(day) })
  await cancel(shop, ids.payout)
  ids.batch = await draft(shop, [row()])
  const other = await draft(shop, [row()])
  for (const id of [ids.batch, other]) {
    await process(shop, id)
    await ended(shop, id)
  }
  for (const title of ['Café', 'Thé']) {
    const body = { title, amount: 5_000 }
    const { body: made } = await fixture.rest('POST', '/payment-links', { token, body })
    ids.link ||= made['data'].id
    await settleMany(pool, [{ id: (await payBy(pool, made['data'].id)).id, to: 'success' }])
  }
  log = await wholeLog()
})

/** The log, once all events have their numbers. */
function wholeLog(): Promise<Logged[]> {
  return eventually(async () => {
    const { rows } = await pool.query<{ n: number }>(
      'SELECT count(*)::int AS n FROM event WHERE merchant_id = $1',
      [shop.merchantId],
    )
    const { body } = await fixture.graphql(
      '{ events(first: 100) { nodes { sequence type data } } }',
      {},
      shop.token,
    )
    const nodes: Logged[] = body.data.events.nodes.map((event: Logged) => ({
      ...event,
      type: event.type.toLowerCase(),
    }))
    expect(nodes).toHaveLength(rows[0]?.n ?? -1)
    return nodes
  })
}

type Result = { data?: Record<string, unknown> | null; errors?: readonly { extensions?: object }[] }

function follow(field: string, { token } = shop) {
  const client = createClient({
    url: `${fixture.url}/graphql`,
    headers: { Authorization: `Bearer ${token}` },
    retryAttempts: 0,
  })
  onTestFinished(() => client.dispose())
  return client.iterate({
    query: `subscription { change: ${field} { sequence type } }`,
  }) as AsyncIterable<Result> & AsyncIterator<Result>
}

/** The answer to a subscription that does not begin. */
async function refusalOf(field: string, { token } = shop): Promise<unknown> {
  const headers = {
    Authorization: `Bearer ${token}`,
    'Content-Type': 'application/json',
    Accept: 'text/event-stream',
  }
  const body = JSON.stringify({ query: `subscription { ${field} { sequence } }` })
  const response = await fetch(`${fixture.url}/graphql`, { method: 'POST', headers, body })
  expect(response.ok).toBe(false)
  const [, result = ''] = /^data: (.*)$/m.exec(await response.text()) ?? []
  return JSON.parse(result)
}

/** Reads as many changes as are expected; then those that come in a moment of silence, which are too many. */
async function changesOf(field: string, count: number): Promise<unknown[]> {
  const results = follow(field)
  const seen: unknown[] = []
  const next = async () => {
    const { value } = await results.next()
    seen.push((value as Result).errors ?? (value as Result).data?.['change'])
  }
  while (seen.length < count) await next()
  await Promise.race([next(), new Promise((resolve) => setTimeout(resolve, 150))])
  return seen
}

const isPayment = ({ type }: Logged) => /^(payment|deposit)_(?!link)/.test(type)
const isPayout = ({ type }: Logged) => type.startsWith('payout_')
const isBatch = ({ type }: Logged) => /^(batch_|bulk_pay_done)/.test(type)
const about = (field: string, id: number) => (event: Logged) => event.data[field] === id

describe('a stream from the beginning of the log', () => {
  const ofPayment = (id: number) => (event: Logged) => isPayment(event) && about('transaction_id', id)(event)
  const ofPayout = (event: Logged) => isPayout(event) && about('payout_id', ids.payout)(event)
  const node = (type: string, id: number) => JSON.stringify(globalId(type, id))

  test.each<[string, () => string, () => (event: Logged) => boolean]>([
    ['one payment', () => `transactionChanged(id: ${ids.paid}, AFTER)`, () => ofPayment(ids.paid)],
    [
      'one payment by its global id',
      () => `transactionChanged(id: ${node('Transaction', ids.failed)}, AFTER)`,
      () => ofPayment(ids.failed),
    ],
    [
      'one payment by its reference',
      () => 'transactionChanged(reference: "paid", AFTER)',
      () => ofPayment(ids.paid),
    ],
    [
      'payments that failed or succeeded',
      () => 'transactionChanged(status: [FAILED, SUCCESS], AFTER)',
      () => (event) => isPayment(event) && /received|failed/.test(event.type),
    ],
    [
      'one payment when it fails',
      () => `transactionChanged(id: ${ids.failed}, status: FAILED, AFTER)`,
      () => (event) => ofPayment(ids.failed)(event) && event.type === 'payment_failed',
    ],
    ['one payout', () => `payoutChanged(id: ${ids.payout}, AFTER)`, () => ofPayout],
    ['one payout by its reference', () => 'payoutChanged(reference: "paid", AFTER)', () => ofPayout],
    [
      'payouts that were cancelled',
      () => 'payoutChanged(status: [CANCELLED], AFTER)',
      () => (event) => event.type === 'payout_cancelled',
    ],
    [
      'one batch',
      () => `batchProgress(id: ${ids.batch}, AFTER)`,
      () => (event) => isBatch(event) && about('batch_id', ids.batch)(event),
    ],
    [
      'one batch by the old argument',
      () => `batchProgress(batchId: ${ids.batch}, AFTER)`,
      () => (event) => isBatch(event) && about('batch_id', ids.batch)(event),
    ],
    [
      'one link',
      () => `paymentLinkUsed(id: ${ids.link}, AFTER)`,
      () => (event) => event.type === 'payment_link_used' && about('payment_link_id', ids.link)(event),
    ],
    [
      'some types of events',
      () => 'events(types: [PAYMENT_FAILED, BULK_PAY_DONE], AFTER)',
      () => (event) => ['payment_failed', 'bulk_pay_done'].includes(event.type),
    ],
  ])('of %s brings its changes, and no other', async (_what, field, isWanted) => {
    const wanted = log.filter(isWanted())
    expect(wanted.length).toBeGreaterThan(0)
    expect(wanted.length).toBeLessThan(log.length)
    const expected = wanted.map(({ sequence, type }) => ({ sequence, type: type.toUpperCase() }))
    expect(await changesOf(field().replace('AFTER', 'after: "0"'), expected.length)).toEqual(expected)
    // In the middle, the stream resumes with the next change.
    const half = expected[Math.floor((expected.length - 1) / 2)]?.sequence ?? 0
    const later = expected.filter(({ sequence }) => sequence > half)
    expect(await changesOf(field().replace('AFTER', `after: "${half}"`), later.length)).toEqual(later)
  })
})

test('a payment can be followed by its reference before it is requested', async () => {
  const results = follow('transactionChanged(reference: "later", status: [FAILED])')
  const first = results.next()
  await eventually(() => expect(fixture.app.services.streams.size).toBeGreaterThan(0))
  await fixture.paid(shop, { reference: 'earlier' })
  const id = BigInt(Number((await fixture.paid(shop, { reference: 'later' }))['transaction_id']))
  await settleMany(pool, [{ id, to: 'failed' }])
  expect((await first).value).toMatchObject({ data: { change: { type: 'PAYMENT_FAILED' } } })
})

test.each<[string, () => string, object]>([
  ['an unknown payment', () => 'transactionChanged(id: 987654321)', { code: 'NOT_FOUND' }],
  [
    'a payout as a payment',
    () => `transactionChanged(id: "${globalId('Payout', ids.payout)}")`,
    { code: 'NOT_FOUND' },
  ],
  ['an unknown payout', () => 'payoutChanged(id: "nonsense")', { code: 'NOT_FOUND' }],
  ['an unknown batch', () => 'batchProgress(id: 987654321)', { code: 'NOT_FOUND' }],
  ['an unknown link', () => 'paymentLinkUsed(id: 987654321)', { code: 'NOT_FOUND' }],
  ['two names', () => 'transactionChanged(id: 1, reference: "a")', refused('id')],
  ['two names of a payout', () => 'payoutChanged(id: 1, reference: "a")', refused('id')],
  ['two names of a batch', () => 'batchProgress(id: 1, batchId: 1)', refused('batchId')],
  ['no status', () => 'transactionChanged(status: [])', refused('status')],
  ['no status of a payout', () => 'payoutChanged(status: [])', refused('status')],
  ['no type', () => 'events(types: [])', refused('types')],
  ['a reference with outer spaces', () => 'transactionChanged(reference: " a")', refused('reference')],
])('%s is refused, and leaves no stream behind', async (_what, field, extensions) => {
  expect(await refusalOf(field())).toMatchObject({ errors: [{ extensions }] })
  await eventually(() => expect(fixture.app.services.streams.size).toBe(0))
})

function refused(field: string): object {
  return { code: 'INVALID_INPUT', problems: [{ field, message: expect.any(String) }] }
}

test('another merchant cannot follow an object, and a reference is its own', async () => {
  const other = await fixture.merchant()
  const refusal = await refusalOf(`transactionChanged(id: ${ids.paid}, after: "0")`, other)
  expect(refusal).toMatchObject({ errors: [{ extensions: { code: 'NOT_FOUND' } }] })
  const own = follow('transactionChanged(reference: "paid", after: "0")', other)
  await fixture.paid(other, { reference: 'paid' })
  expect((await own.next()).value).toMatchObject({ data: { change: { sequence: 1 } } })
})

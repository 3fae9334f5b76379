import { Client, fetchExchange } from '@urql/core'
import { createClient } from 'graphql-ws'
import { beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { startReceiver } from '../../kit/webhooks/receivers.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

// The log of events, its deliveries and replays: by published clients of GraphQL.

const fixture = await openFixture()
const { owner } = fixture.database
let shop: TestMerchant
let stranger: TestMerchant
beforeAll(async () => {
  shop = await fixture.merchant()
  stranger = await fixture.merchant()
  for (const merchant of [shop, stranger, shop, shop])
    await fixture.paid(merchant, { customer_phone: customer('00') })
  await eventually(async () => {
    const { rows } = await owner.query('SELECT count(*)::int AS n FROM event WHERE position IS NOT NULL')
    if (rows[0].n < 8) throw new Error('not all numbered')
  })
})

type Data = ReturnType<typeof JSON.parse>
async function run(
  document: string,
  variables: object = {},
  { token }: { token: string } = shop,
): Promise<Data> {
  const client = new Client({
    url: `${fixture.url}/graphql`,
    exchanges: [fetchExchange],
    preferGetMethod: false,
    fetchOptions: { headers: { Authorization: `Bearer ${token}` } },
  })
  const operation = document.startsWith('mutation') ? 'mutation' : 'query'
  const { data, error } = await client[operation](document, variables).toPromise()
  if (error) throw error
  return data
}
/** The code of a refusal and the names of its fields. */
const problemsOf = async (document: string, variables: object = {}, merchant = shop): Promise<unknown[]> => {
  const { body } = await fixture.graphql(document, variables, merchant.token)
  const [error] = body.errors ?? []
  const refusal = error ? error.extensions : Object.values(body['data'])[0]
  return [refusal.code, ...(refusal.problems ?? []).map(({ field }: { field: string }) => field)]
}
const numbers = (nodes: Data[]) => nodes.map(({ sequence }) => sequence)

const page = `query ($first: Int, $after: String) { events(first: $first, after: $after) {
  edges { cursor } nodes { id sequence type occurredAt data }
  pageInfo { hasNextPage hasPreviousPage endCursor } } }`
const replay = `mutation ($webhook: ID!, $from: SafeInt, $to: SafeInt, $ids: [ID!]) {
  replayEvents(webhookId: $webhook, from: $from, to: $to, ids: $ids) { __typename
    ... on EventReplay { count webhook { databaseId } } ... on Refusal { code }
    ... on InvalidInputError { problems { field message } } } }`
const shown = `query ($first: Int, $after: String, $status: [WebhookDeliveryStatus!]) { webhooks { nodes {
  deliveries(first: $first, after: $after, status: $status) { pageInfo { hasNextPage endCursor } nodes {
    id databaseId type sequence status attemptsTotal nextAttemptAt endedAt event { id sequence type data }
    attempts { nth statusCode error durationMs answer address at } } } } } }`

/** An endpoint for events of payments, switched off for now. */
async function quietWebhook(merchant = shop): Promise<number> {
  const { token } = merchant
  const body = { url: 'https://shop.example/', events: ['payment_received', 'security_alert'] }
  const made = await fixture.rest('POST', '/webhooks', { token, body })
  const { id } = made.body['data']
  await fixture.rest('PUT', `/webhooks/${id}`, { token, body: { is_active: false } })
  return id
}

describe('events', () => {
  test('pages lead through the whole log, with the fields of a webhook', async () => {
    const { events: first } = await run(page, { first: 4 })
    expect(numbers(first.nodes)).toEqual([1, 2, 3, 4])
    expect(first.edges.map(({ cursor }: Data) => cursor)).toEqual(['1', '2', '3', '4'])
    expect(first.pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: false, endCursor: '4' })
    const { events: rest } = await run(page, { after: '4' })
    expect(numbers(rest.nodes)).toEqual([5, 6])
    expect(rest.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: true })
    const { events: none } = await run(page, { after: '6' })
    expect([none.nodes, none.pageInfo.endCursor]).toEqual([[], null])
    const paid = [...first.nodes, ...rest.nodes].find(({ type }) => type === 'PAYMENT_RECEIVED')
    expect(paid).toMatchObject({ id: expect.stringMatching(/^evt_\d+$/), occurredAt: expect.any(String) })
    expect(paid.data).toEqual({
      transaction_id: expect.any(Number),
      reference: expect.any(String),
      amount: 5_000,
      currency: 'XOF',
      payment_method: 'OperatorA',
      customer_phone: expect.any(String),
      late: false,
    })
  })

  test.each([
    [{ after: 'x' }, 'after'],
    [{ after: '987654' }, 'after'],
    [{ first: 101 }, 'first'],
    [{ first: 0 }, 'first'],
  ])('%j is refused by name', async (variables, field) => {
    expect(await problemsOf(page, variables)).toEqual(['INVALID_INPUT', field])
  })

  test('a subscription delivers the same events, and new ones; others skip other types', async () => {
    const client = createClient({
      url: `${fixture.url.replace('http', 'ws')}/graphql`,
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${stranger.token}` },
    })
    const follow = (field: string) =>
      client.iterate<Data>({ query: `subscription { ${field}(after: "0") { sequence type } }` })
    const all = client.iterate<Data>({
      query: 'subscription { events(after: "0") { id sequence type occurredAt data } }',
    })
    const payments = follow('transactionChanged')
    const payouts = follow('payoutChanged')
    const next = async (stream: typeof all) =>
      Object.values((await stream.next()).value?.data ?? {})[0] as Data
    const { events: log } = await run(page, {}, stranger)
    expect([await next(all), await next(all)]).toEqual(log.nodes)
    expect([await next(payments), await next(payments)].map(({ sequence }) => sequence)).toEqual([1, 2])

    const data = { kind: 'webhook_disabled', message: 'Look.', webhook_id: 1, url: 'https://shop.example/' }
    await owner.query(
      "SELECT append_events(ARRAY[($1::int, 'security_alert', $2::jsonb)::new_event], now())",
      [stranger.merchantId, data],
    )
    await owner.query('SELECT announce_events($1, 1000)', [[stranger.merchantId]])
    const alert = await next(all)
    expect(alert).toMatchObject({ sequence: 3, type: 'SECURITY_ALERT', data: { kind: 'webhook_disabled' } })
    await fixture.fund(stranger, 5_000)
    const token = stranger.token
    const body = { amount: 1_000, destination_phone: customer('00'), payment_method: 'OperatorA' }
    await fixture.rest('POST', '/payouts', { token, body })
    expect(await next(payouts)).toEqual({ sequence: 4, type: 'PAYOUT_PENDING' })
    await fixture.paid(stranger, { customer_phone: customer('11') })
    expect(await next(payments)).toMatchObject({ type: 'PAYMENT_PENDING' })
    expect((await next(all)).sequence).toBe(4)
    await client.dispose()
  })
})

describe('replayEvents', () => {
  test('events from before the endpoint are sent on request, of the types that it names', async () => {
    const webhook = await quietWebhook()
    const told = { __typename: 'EventReplay', count: 3, webhook: { databaseId: webhook } }
    expect((await run(replay, { webhook, from: 1, to: 10_000 })).replayEvents).toEqual(told)
    await owner.query(
      `UPDATE webhook_delivery SET status = 'dead', attempt_count = 12, attempts_total = 12, ended_at = now()
       WHERE id = (SELECT max(id) FROM webhook_delivery WHERE endpoint_id = $1)`,
      [webhook],
    )
    const { events } = await run(page)
    const paid = events.nodes.filter(({ type }: Data) => type === 'PAYMENT_RECEIVED')
    const ids = paid.map(({ id }: Data) => id)
    expect((await run(replay, { webhook, ids: [ids[2], ids[2], ids[1]] })).replayEvents.count).toBe(2)
    expect((await run(replay, { webhook, from: 1, to: 1 })).replayEvents.count).toBe(0)
    const { rows } = await owner.query(
      `SELECT position::int, status, attempt_count, attempts_total FROM webhook_delivery
       WHERE endpoint_id = $1 ORDER BY id`,
      [webhook],
    )
    const pending = { status: 'pending', attempt_count: 0, attempts_total: 0 }
    expect(rows).toEqual(
      numbers(paid).map((position, place) => ({
        position,
        ...pending,
        attempts_total: place === 2 ? 12 : 0,
      })),
    )
  })

  test.each<[object, string[]]>([
    [{}, ['events']],
    [{ from: 1 }, ['to']],
    [{ to: 1 }, ['from']],
    [{ from: 1, to: 2, ids: ['evt_1'] }, ['events']],
    [{ from: 2, to: 1 }, ['to']],
    [{ from: 0, to: 1 }, ['from']],
    [{ from: 1, to: 10_001 }, ['to']],
    [{ ids: [] }, ['ids']],
    [{ ids: ['evt_1', 'evt_999999', '7', 'evt_-1', 'evt_test_1'] }, ['ids[1]', 'ids[2]', 'ids[3]', 'ids[4]']],
  ])('%j is refused by name', async (which, fields) => {
    const webhook = await webhooks.get()
    expect(await problemsOf(replay, { webhook, ...which })).toEqual(['INVALID_INPUT', ...fields])
  })

  test("another merchant's events are not found, and neither is its endpoint", async () => {
    const webhook = await quietWebhook(stranger)
    const { events } = await run(page)
    const ids = [events.nodes[1].id]
    expect(await problemsOf(replay, { webhook, ids }, stranger)).toEqual(['INVALID_INPUT', 'ids[0]'])
    expect(await problemsOf(replay, { webhook, ids })).toEqual(['NOT_FOUND'])
  })
})

test('a paid event arrives; waiting ones come when enabled, and again when replayed', async () => {
  const merchant = await fixture.merchant()
  const { token } = merchant
  let status = 200
  const receiver = await startReceiver((response) => response.writeHead(status).end('thanks'))
  const body = { url: `http://127.0.0.1:${receiver.port}/`, events: ['payment_received'] }
  const made = await fixture.rest('POST', '/webhooks', { token, body })
  const { id } = made.body['data']
  const pay = () => fixture.paid(merchant, { customer_phone: customer('00') })
  const told = () => receiver.arrived.map(({ body: bytes }) => JSON.parse(bytes.toString()))
  const untilEmitted = (count: number) => eventually(() => expect(told()).toHaveLength(count))
  const put = (change: object) => fixture.rest('PUT', `/webhooks/${id}`, { token, body: change })
  await pay()
  await untilEmitted(1)
  const { events } = await run(page, {}, merchant)
  const { id: eventId, data } = events.nodes.find(({ type }: Data) => type === 'PAYMENT_RECEIVED')
  expect(told()[0]).toMatchObject({ id: eventId, event: 'payment_received', data, sequence: 2 })

  // A failure waits for its time; an endpoint that is enabled anew does not.
  status = 500
  await pay()
  await untilEmitted(2)
  await eventually(async () => {
    const { webhooks: shownNow } = await run(shown, {}, merchant)
    const [failed] = shownNow.nodes[0].deliveries.nodes
    expect(failed).toMatchObject({ status: 'PENDING', attempts: [{ statusCode: 500, answer: 'thanks' }] })
  })
  await put({ is_active: false })
  await pay()
  status = 200
  await eventually(async () => expect((await run(page, {}, merchant)).events.nodes).toHaveLength(6))
  await put({ is_active: true })
  await untilEmitted(4)
  await run(replay, { webhook: id, from: 1, to: 6 }, merchant)
  await untilEmitted(7)
  const ids = told().map(({ id: one }) => one)
  expect(new Set(ids).size).toBe(3)
  expect(ids.slice(4)).toEqual([ids[0], ids[2], ids[3]])
  expect(ids[2]).toBe(ids[1])
})

/** One endpoint for all cases that only name it. */
const webhooks = {
  made: null as Promise<number> | null,
  get() {
    this.made ??= quietWebhook()
    return this.made
  },
}

describe('webhooks with their deliveries', () => {
  test('come newest first, page by page, with every attempt and the event', async () => {
    const merchant = await fixture.merchant()
    for (let n = 0; n < 2; n += 1) await fixture.paid(merchant, { customer_phone: customer('00') })
    await eventually(async () => expect((await run(page, {}, merchant)).events.nodes).toHaveLength(4))
    const webhook = await quietWebhook(merchant)
    await run(replay, { webhook, from: 1, to: 4 }, merchant)
    await owner.query(
      `WITH ended AS (
         UPDATE webhook_delivery
         SET status = 'dead', attempt_count = 25, attempts_total = 25, ended_at = now()
         WHERE id = (SELECT min(id) FROM webhook_delivery WHERE endpoint_id = $1) RETURNING id, merchant_id
       )
       INSERT INTO webhook_attempt
         (delivery_id, merchant_id, nth, status_code, duration_ms, answer, address, at)
       SELECT id, merchant_id, nth, 500, 10 * nth, 'boom', '::1', now()
       FROM ended, generate_series(1, 25) AS nth`,
      [webhook],
    )
    const ask = async (variables: object) =>
      (await run(shown, variables, merchant)).webhooks.nodes[0].deliveries
    const first = await ask({ first: 1 })
    expect(first.nodes).toEqual([
      {
        id: expect.any(String),
        databaseId: expect.any(Number),
        type: 'PAYMENT_RECEIVED',
        sequence: 4,
        status: 'PENDING',
        attemptsTotal: 0,
        nextAttemptAt: null,
        endedAt: null,
        event: {
          id: expect.stringMatching(/^evt_/),
          sequence: 4,
          type: 'PAYMENT_RECEIVED',
          data: expect.any(Object),
        },
        attempts: [],
      },
    ])
    expect(first.pageInfo).toEqual({ hasNextPage: true, endCursor: String(first.nodes[0].databaseId) })
    const second = await ask({ first: 1, after: first.pageInfo.endCursor })
    expect(second.pageInfo.hasNextPage).toBe(false)
    expect(second.nodes[0]).toMatchObject({ status: 'DEAD', attemptsTotal: 25 })
    expect(second.nodes[0].sequence).toBeLessThan(4)
    const { attempts } = second.nodes[0]
    expect(attempts.map(({ nth }: Data) => nth)).toEqual(Array.from({ length: 16 }, (_, n) => 25 - n))
    expect(attempts[0]).toMatchObject({
      statusCode: 500,
      error: null,
      durationMs: 250,
      answer: 'boom',
      address: '::1',
    })
    expect((await ask({ status: 'DEAD' })).nodes).toHaveLength(1)
    expect((await ask({ status: 'DELIVERED' })).nodes).toEqual([])
    expect(await problemsOf(shown, { first: 101 }, merchant)).toEqual(['INVALID_INPUT', 'first'])
    expect(await problemsOf(shown, { after: 'x' }, merchant)).toEqual(['INVALID_INPUT', 'after'])

    // Five endpoints at most, each delivery with its event and 16 attempts.
    const { body } = await fixture.graphql(shown, { first: 100 }, merchant.token)
    expect(body.extensions.cost.requested).toBe(5 + 5 * 100 * (1 + 1 + 16))

    const node = 'query ($id: ID!) { node(id: $id) { ... on WebhookDelivery { status } } }'
    const { id } = second.nodes[0]
    expect((await run(node, { id }, merchant)).node).toEqual({ status: 'DEAD' })
    expect((await run(node, { id }, stranger)).node).toBeNull()
    await run(`mutation { removeWebhook(id: ${webhook}) { __typename } }`, {}, merchant)
    expect((await run(node, { id }, merchant)).node).toBeNull()
  })
})

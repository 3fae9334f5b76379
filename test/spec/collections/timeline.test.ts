import type pg from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { asMerchant } from '../../../src/database/merchant-pool.ts'
import { scopes } from '../../../src/identity/callers/scopes.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { withClient } from '../../kit/client.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, hour, minute, openFixture } from '../../kit/fixture.ts'
import { makeMember, nameHolder } from '../../kit/members.ts'
import { startReceiver } from '../../kit/webhooks/receivers.ts'

// GraphQL `Transaction.timeline`. The simulator and the receiver of a test tell what really happened. The
// wait for the outcome of a refund is shorter where its customer does not answer.
const wait = vi.hoisted(() => ({ ms: null as number | null }))
vi.mock(import('../../../src/shared/limits.ts'), async (original) => {
  const { limits: real } = await original()
  const waits = {
    get depositWaitMs() {
      return wait.ms ?? real.depositWaitMs
    },
  }
  return { limits: Object.defineProperties({ ...real }, Object.getOwnPropertyDescriptors(waits)) }
})
vi.mock(import('../../../src/requests/schedule.ts'), async (original) =>
  (await import('../../kit/quick-polls.ts')).quickPolls(await original()),
)

const fixture = await openFixture({ WEBHOOK_RETRY_SCHEDULE: '1,1,1' })
const { owner, database } = fixture.database
const shop = await fixture.merchant()

interface Entry {
  at: string
  kind: string
  source: string
  status: string | null
  failureReason: string | null
  statusCode: number | null
  durationMs: number | null
  eventType: string | null
  refundId: number | null
}

const document = `query ($id: SafeInt!) { transaction(databaseId: $id) { timeline {
  at kind source status failureReason statusCode durationMs eventType refundId } } }`

/** Reads a timeline, whose entries must be in the order of their times. */
async function timeline(id: unknown, { token }: { token: string } = shop): Promise<Entry[]> {
  const { body } = await fixture.graphql(document, { id }, token)
  expect(body.errors).toBeUndefined()
  const entries = body.data.transaction.timeline as Entry[]
  expect(entries.map(({ at }) => at)).toEqual(entries.map(({ at }) => at).toSorted())
  return entries
}

const short = ({ kind, source, status }: Entry) =>
  [kind, source, ...(status === null ? [] : [status])].join(' ')
/** A story without the questions and callbacks of its operator: their number is the operator's own. */
const withoutAnswers = (story: string[]) => story.filter((line) => !/^OPERATOR_(QUES|CALLED)/.test(line))
const only = (entries: Entry[], kind: string) => entries.filter((entry) => entry.kind === kind)

/** The timeline once the payment has a status; all callbacks are in it, and all requests that ask to pay. */
async function settled(id: unknown, status: string, merchant: TestMerchant = shop) {
  await eventually(async () => expect(await fixture.statusOf(merchant, id)).toBe(status))
  const prompts = (await fixture.seen(await fixture.correlationOf(id))).filter(
    ({ method }) => method === 'POST',
  )
  return eventually(async () => {
    const entries = await timeline(id, merchant)
    const answers = entries.filter(({ kind }) => /^OPERATOR_(ANSWERED|DID_NOT)/.test(kind))
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(prompts.map((prompt) => prompt.status))
    expect(only(entries, 'OPERATOR_ASKED')).toHaveLength(prompts.length)
    expect(only(entries, 'OPERATOR_CALLED_BACK')).toHaveLength(await fixture.callbacksOf(id))
    expect(only(entries, 'OPERATOR_QUESTIONED').length > 0 || answers[0]?.statusCode === 200).toBe(true)
    return { entries, prompts, story: entries.map(short) }
  })
}

/** The answers to the questions about a payment, as the operator saw them: by each name of the request. */
async function questionsOf(id: unknown) {
  const { rows } = await owner.query<{ handle: Record<string, string>; name: string }>(
    `SELECT handle, correlation_id AS name FROM operator_request WHERE transaction_id = $1`,
    [id],
  )
  const { operatorRef, serverCorrelationId } = rows[0]?.handle ?? {}
  const names = [rows[0]?.name, operatorRef, serverCorrelationId].filter((name) => name != null)
  const all = (await Promise.all(names.map((name) => fixture.seen(name)))).flat()
  const questions = all.filter(({ method }) => method === 'GET')
  return [...new Map(questions.map((question) => [JSON.stringify(question), question])).values()]
    .toSorted((one, other) => (one.at < other.at ? -1 : 1))
    .map(({ status }) => status)
}

const asked = ['REQUESTED MERCHANT', 'OPERATOR_ASKED SERVICE', 'OPERATOR_ANSWERED OPERATOR']

test('a collection by callback: each call has the time and the status that the operator saw', async () => {
  const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('09') })
  await fixture.answer(id, 'confirm')
  const { entries, prompts, story } = await settled(id, 'success')
  expect(story.slice(0, 4)).toEqual([...asked, 'OPERATOR_CALLED_BACK OPERATOR'])
  expect(story.slice(4, -1)).toEqual(Array(entries.length - 5).fill('OPERATOR_QUESTIONED SERVICE'))
  expect(story.at(-1)).toBe('STATUS_CHANGED OPERATOR SUCCESS')
  const [, ask, answer] = entries
  expect(ask).toMatchObject({ statusCode: null, durationMs: null })
  expect(answer).toMatchObject({ statusCode: 202, durationMs: expect.any(Number) })
  expect(Date.parse(answer?.at ?? '')).toBe(Date.parse(ask?.at ?? '') + (answer?.durationMs ?? 0))
  expect((ask?.at ?? '') <= (prompts[0]?.at ?? '')).toBe(true)
  // Times are cut to milliseconds, and durations rounded.
  expect(Date.parse(answer?.at ?? '') + 2).toBeGreaterThanOrEqual(Date.parse(prompts[0]?.at ?? ''))
  await eventually(async () =>
    expect(only(await timeline(id), 'OPERATOR_QUESTIONED').map(({ statusCode }) => statusCode)).toEqual(
      await questionsOf(id),
    ),
  )
})

test('a collection by polling has each question, and no callback', async () => {
  const body = { payment_method: 'OperatorC', customer_phone: customer('00', '02') }
  const { transaction_id: id } = await fixture.paid(shop, body)
  const { entries, story } = await settled(id, 'success')
  expect(story.slice(0, 3)).toEqual(asked)
  expect(only(entries, 'OPERATOR_CALLED_BACK')).toEqual([])
  await eventually(async () => {
    const questions = only(await timeline(id), 'OPERATOR_QUESTIONED').map(({ statusCode }) => statusCode)
    expect(questions.length).toBeGreaterThan(1)
    expect(questions).toEqual(await questionsOf(id))
  })
  expect(story.filter((line) => line.startsWith('STATUS'))).toEqual(['STATUS_CHANGED OPERATOR SUCCESS'])
})

test('a request whose answer is lost is told as such, before the question that found it paid', async () => {
  const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('20') })
  const { entries, story } = await settled(id, 'success')
  expect(story.slice(1, 3)).toEqual(['OPERATOR_ASKED SERVICE', 'OPERATOR_DID_NOT_ANSWER SERVICE'])
  expect(entries[2]).toMatchObject({ statusCode: null, durationMs: expect.any(Number) })
})

test('a refused collection has the reason, and the operator as its source', async () => {
  const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('01', '00') })
  const { entries } = await settled(id, 'failed')
  expect(only(entries, 'STATUS_CHANGED')).toMatchObject([
    { source: 'OPERATOR', status: 'FAILED', failureReason: 'PAYER_DECLINED' },
  ])
})

const refunding = `mutation ($id: ID!, $amount: Amount) { refundTransaction(id: $id, amount: $amount) {
  ... on PaymentInitiation { databaseId status } ... on PaymentRefusedError { initiation { databaseId } } } }`
async function refund(id: unknown, amount: number | null, { token } = shop): Promise<number> {
  const { body } = await fixture.graphql(refunding, { id: String(id), amount }, token)
  const given = body.data.refundTransaction
  return given.databaseId ?? given.initiation.databaseId
}

test('refunds are told with their payments; the last one gives the money back', async () => {
  const merchant = await fixture.merchant()
  const { transaction_id: id } = await fixture.paid(merchant, { customer_phone: customer('00') })
  await settled(id, 'success', merchant)
  const first = await refund(id, 2_000, merchant)
  const last = await refund(id, null, merchant)
  const { entries, story } = await settled(id, 'reversed', merchant)
  expect(story.slice(-5)).toEqual([
    'REFUND_REQUESTED MERCHANT',
    'REFUNDED OPERATOR',
    'REFUND_REQUESTED MERCHANT',
    'REFUNDED OPERATOR',
    'STATUS_CHANGED MERCHANT REVERSED',
  ])
  const ids = entries.slice(-5).map((entry) => entry.refundId)
  expect(ids).toEqual([first, first, last, last, null])
  const own = await settled(last, 'success', merchant)
  expect(withoutAnswers(own.story)).toEqual([...asked, 'STATUS_CHANGED OPERATOR SUCCESS'])
})

test('a refund that the operator refuses is told as failed', async () => {
  const merchant = await fixture.merchant()
  const { transaction_id: id } = await fixture.paid(merchant, { customer_phone: customer('09') })
  await fixture.answer(id, 'confirm')
  await settled(id, 'success', merchant)
  wait.ms = 100
  onTestFinished(() => {
    wait.ms = null
  })
  const failed = await refund(id, 2_000, merchant)
  await fixture.answer(failed, 'decline')
  await settled(failed, 'failed', merchant)
  const { entries } = await settled(id, 'success', merchant)
  expect(entries.slice(-2)).toMatchObject([
    { kind: 'REFUND_REQUESTED', source: 'MERCHANT', refundId: failed },
    { kind: 'REFUND_FAILED', source: 'OPERATOR', status: null, refundId: failed },
  ])
})

test('late money changes the status again, after the callback that told of it', async () => {
  const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('09') })
  await fixture.advance(24 * hour + minute)
  await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('expired'))
  await fixture.answer(id, 'confirm')
  const { story } = await settled(id, 'success')
  expect(story.filter((line) => !line.startsWith('OPERATOR_Q'))).toEqual([
    ...asked,
    'STATUS_CHANGED SERVICE EXPIRED',
    'OPERATOR_CALLED_BACK OPERATOR',
    'STATUS_CHANGED OPERATOR SUCCESS',
  ])
})

/** Registers a receiver that answers with these statuses, the last one again and again. */
async function listen(merchant: TestMerchant, events: string[], ...answers: number[]) {
  const receiver = await startReceiver((response) => {
    response.statusCode = answers.length > 1 ? (answers.shift() ?? 204) : (answers[0] ?? 204)
    response.end()
  })
  const body = { url: `http://127.0.0.1:${receiver.port}/hook`, events }
  const made = await fixture.rest('POST', '/webhooks', { token: merchant.token, body })
  expect(made.status).toBe(201)
  return { receiver, id: made.body['data'].id as number }
}

test('a link payment is requested by its payer; each webhook is told as it was answered', async () => {
  const merchant = await fixture.merchant()
  const { token } = merchant
  const hook = await listen(merchant, ['payment_received', 'payment_link_used'], 500, 204)
  await fixture.rest('POST', `/webhooks/${hook.id}/test`, { token })
  const link = { title: 'Café', amount: 5_000 }
  const made = await fixture.rest('POST', '/payment-links', { token, body: link })
  const paid = await fetch(`${fixture.url}/l/${made.body['data'].url_slug}`, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({ amount: '5000', phone: customer('00') }),
  })
  expect(paid.status).toBe(303)
  const listed = await fixture.rest('GET', '/transactions', { token })
  const { id } = listed.body['data'].transactions[0]
  // The sample was refused (500); both events came at once.
  await eventually(() => expect(hook.receiver.arrived).toHaveLength(3))
  const failing = await listen(merchant, ['payment_received'], 503, 202)
  await fixture.graphql(
    `mutation { replayEvents(webhookId: ${failing.id}, from: 1, to: 50) { __typename } }`,
    {},
    token,
  )
  await eventually(() => expect(failing.receiver.arrived).toHaveLength(2))
  await eventually(async () => expect(only(await timeline(id, merchant), 'WEBHOOK_SENT')).toHaveLength(4))
  const { entries, story } = await settled(id, 'success', merchant)
  expect(story[0]).toBe('REQUESTED PAYER')
  const sent = only(entries, 'WEBHOOK_SENT')
  expect(sent.map(({ eventType, statusCode }) => [eventType, statusCode])).toEqual([
    ...hook.receiver.arrived.slice(1).map(({ body }) => [JSON.parse(String(body)).event.toUpperCase(), 204]),
    ['PAYMENT_RECEIVED', 503],
    ['PAYMENT_RECEIVED', 202],
  ])

  // Without the scope `webhooks` the same timeline lacks these entries alone; a removed endpoint keeps them.
  const { body } = await fixture.rest('POST', '/auth', {
    headers: { 'X-API-Key': merchant.apiKey, 'X-API-Secret': merchant.apiSecret },
    body: { scopes: scopes.filter((scope) => scope !== 'webhooks') },
  })
  const without = await timeline(id, { token: body['data'].token })
  expect(without).toEqual(entries.filter(({ kind }) => kind !== 'WEBHOOK_SENT'))
  await fixture.rest('DELETE', `/webhooks/${hook.id}`, { token })
  expect(await timeline(id, merchant)).toEqual(entries)
})

test('a deposit that waits is told with its approvals, and a rejected one with its end', async () => {
  const merchant = await fixture.merchant()
  await fixture.fund(merchant, 100_000)
  const { access } = fixture.app.services
  await nameHolder(owner, access, merchant.merchantId)
  const body = { payouts_require_approval: true, approval_threshold: 2_000, approvals_cover_deposits: true }
  await fixture.rest('PUT', '/settings', { token: merchant.token, body })
  const member = await makeMember(access, merchant.merchantId, 'finance')
  const deposited = async () => (await fixture.deposit(merchant, { amount: 3_000 })).body.data.transaction_id
  const [first, second] = [await deposited(), await deposited()]
  const { body: read } = await fixture.graphql(
    `{ transaction(databaseId: ${first}) { approval { digest } } }`,
    {},
    member.token,
  )
  const { digest } = read.data.transaction.approval
  await fixture.graphql(
    `mutation { approveDeposit(id: "${first}", digest: "${digest}") { __typename } }`,
    {},
    member.token,
  )
  await fixture.graphql(
    `mutation { rejectDeposit(id: "${second}", reason: "no") { __typename } }`,
    {},
    member.token,
  )
  const { story } = await settled(first, 'success', merchant)
  expect(withoutAnswers(story)).toEqual([
    'REQUESTED MERCHANT',
    'APPROVAL_REQUESTED SERVICE',
    'APPROVED MERCHANT',
    'STATUS_CHANGED SERVICE PROCESSING',
    ...asked.slice(1),
    'STATUS_CHANGED OPERATOR SUCCESS',
  ])
  expect((await timeline(second, merchant)).map(short)).toEqual([
    'REQUESTED MERCHANT',
    'APPROVAL_REQUESTED SERVICE',
    'STATUS_CHANGED MERCHANT CANCELLED',
  ])
})

test('another merchant sees nothing, by GraphQL or by the function', async () => {
  const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('00') })
  await settled(id, 'success')
  const stranger = await fixture.merchant()
  const { body } = await fixture.graphql(document, { id }, stranger.token)
  expect(body).toEqual({ data: { transaction: null }, extensions: expect.anything() })
  const read = (bound: number, named: number) =>
    asMerchant(bound, async () => {
      const text = 'SELECT count(*)::int AS n FROM timeline_of($1, $2, true, 100)'
      return (await database.merchantPool.query<{ n: number }>(text, [named, [id]])).rows[0]?.n
    })
  expect(await read(shop.merchantId, shop.merchantId)).toBeGreaterThan(4)
  expect(await read(stranger.merchantId, shop.merchantId)).toBe(0)
  expect(await read(stranger.merchantId, stranger.merchantId)).toBe(0)
})

test('of more than 100 entries the oldest questions are left out, then the oldest attempts', async () => {
  const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('00') })
  await settled(id, 'success')
  const known = (await timeline(id)).filter(({ kind }) => kind !== 'OPERATOR_QUESTIONED')
  await owner.query(
    `INSERT INTO operator_exchange (merchant_id, request_id, operation, method, path, status, request_body,
       response_body, duration_ms, at)
     SELECT r.merchant_id, r.id, 'query', 'GET', '/', 200, '', '', n, service_now() + n * interval '1 minute'
     FROM operator_request r, generate_series(1, 150) AS n WHERE r.transaction_id = $1`,
    [id],
  )
  const numbersOf = (entries: Entry[], kind: string) =>
    only(entries, kind).map(({ durationMs }) => durationMs)
  const upTo = (last: number, count: number) => Array.from({ length: count }, (_, n) => last - count + 1 + n)
  const others = (entries: Entry[]) => entries.filter(({ kind }) => !/QUESTIONED|WEBHOOK/.test(kind))
  const questioned = await timeline(id)
  expect(others(questioned)).toEqual(known)
  expect(numbersOf(questioned, 'OPERATOR_QUESTIONED')).toEqual(upTo(150, 100 - known.length))

  const { token } = shop
  const body = { url: 'https://shop.example/', events: ['payment_received'] }
  const { id: endpoint } = (await fixture.rest('POST', '/webhooks', { token, body })).body['data']
  await fixture.rest('PUT', `/webhooks/${endpoint}`, { token, body: { is_active: false } })
  await owner.query(
    `INSERT INTO webhook_delivery (merchant_id, endpoint_id, position, type, status, attempts_total, ended_at,
       created_at)
     SELECT e.merchant_id, $2, e.position, e.type, 'dead', 60, now(), now() FROM event e
     WHERE e.type = 'payment_received' AND e.data->>'transaction_id' = $1`,
    [String(id), endpoint],
  )
  const attempt = (from: number, to: number) =>
    owner.query(
      `INSERT INTO webhook_attempt (delivery_id, nth, merchant_id, status_code, duration_ms, answer, at)
       SELECT d.id, n, d.merchant_id, 500, n, '', service_now() + n * interval '1 second'
       FROM webhook_delivery d, generate_series($2::int, $3::int) AS n WHERE d.endpoint_id = $1`,
      [endpoint, from, to],
    )
  await attempt(1, 60)
  const told = await timeline(id)
  expect(others(told)).toEqual(known)
  expect(numbersOf(told, 'WEBHOOK_SENT')).toEqual(upTo(60, 60))
  expect(numbersOf(told, 'OPERATOR_QUESTIONED')).toEqual(upTo(150, 40 - known.length))
  await attempt(61, 150)
  const full = await timeline(id)
  expect(others(full)).toEqual(known)
  expect(numbersOf(full, 'WEBHOOK_SENT')).toEqual(upTo(150, 100 - known.length))
})

test('timelines are read by the indexes: no row of another payment is read', async () => {
  const ids: unknown[] = []
  for (let n = 0; n < 3; n += 1)
    ids.push((await fixture.paid(shop, { customer_phone: customer('00') })).transaction_id)
  for (const id of ids) await settled(id, 'success')
  const { rows: own } = await owner.query<{ name: string; n: number }>(
    `WITH r AS (SELECT id FROM operator_request WHERE transaction_id = ANY ($1))
     SELECT 'event' AS name, count(*)::int AS n FROM event WHERE (data->>'transaction_id')::bigint = ANY ($1)
     UNION ALL SELECT 'operator_callback', count(*)::int FROM operator_callback JOIN r ON r.id = request_id
     UNION ALL SELECT 'operator_exchange', count(*)::int FROM operator_exchange JOIN r ON r.id = request_id
     UNION ALL SELECT 'transaction', 3`,
    [ids],
  )
  const counts = async (client: pg.PoolClient) => {
    const { rows } = await client.query<{ name: string; n: number }>(
      `SELECT relname AS name, (seq_tup_read + idx_tup_fetch)::int AS n FROM pg_stat_xact_user_tables
       WHERE relname = ANY ($1) ORDER BY 1`,
      [own.map(({ name }) => name)],
    )
    return rows
  }
  await asMerchant(shop.merchantId, () =>
    withClient(database.merchantPool, async (client) => {
      await client.query('BEGIN')
      const before = new Map((await counts(client)).map(({ name, n }) => [name, n]))
      await client.query('SELECT * FROM timeline_of($1, $2, true, 100)', [shop.merchantId, ids])
      const read = (await counts(client)).map(({ name, n }) => ({ name, n: n - (before.get(name) ?? 0) }))
      expect(read).toEqual(own)
    }),
  )
})

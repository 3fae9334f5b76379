import { expect, onTestFinished, test, vi } from 'vitest'
import { asMerchant } from '../../../src/database/merchant-pool.ts'
import { scopes } from '../../../src/identity/callers/scopes.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, hour, minute, openFixture } from '../../kit/fixture.ts'
import { makeMember, nameHolder } from '../../kit/members.ts'
import { only, short, timelineDocument, timelinesOn, withoutAnswers } from '../../kit/timelines.ts'
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
const { timeline, settled, questionsOf } = timelinesOn(fixture)

const asked = ['REQUESTED MERCHANT', 'OPERATOR_ASKED SERVICE', 'OPERATOR_ANSWERED OPERATOR']

test('a collection by callback: each call has the time and the status that the operator saw', async () => {
  const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('09') })
  await fixture.answer(id, 'confirm')
  const { entries, prompts, story } = await settled(id, 'success', shop)
  expect(story.slice(0, 3)).toEqual(asked)
  const between = ['OPERATOR_CALLED_BACK OPERATOR', 'OPERATOR_QUESTIONED SERVICE']
  expect([...new Set(story.slice(3, -1))].toSorted()).toEqual(between)
  expect(story.at(-1)).toBe('STATUS_CHANGED OPERATOR SUCCESS')
  const [, ask, answer] = entries
  expect(ask).toMatchObject({ statusCode: null, durationMs: null })
  expect(answer).toMatchObject({ statusCode: 202, durationMs: expect.any(Number) })
  expect(Date.parse(answer?.at ?? '')).toBe(Date.parse(ask?.at ?? '') + (answer?.durationMs ?? 0))
  expect((ask?.at ?? '') <= (prompts[0]?.at ?? '')).toBe(true)
  await eventually(async () =>
    expect(only(await timeline(id, shop), 'OPERATOR_QUESTIONED').map(({ statusCode }) => statusCode)).toEqual(
      await questionsOf(id, shop),
    ),
  )
})

test('a collection by polling has each question, and no callback', async () => {
  const body = { payment_method: 'OperatorC', customer_phone: customer('00', '10') }
  const { transaction_id: id } = await fixture.paid(shop, body)
  const { entries, story } = await settled(id, 'success', shop)
  expect(story.slice(0, 3)).toEqual(asked)
  expect(only(entries, 'OPERATOR_CALLED_BACK')).toEqual([])
  await eventually(async () => {
    const questions = only(await timeline(id, shop), 'OPERATOR_QUESTIONED').map(
      ({ statusCode }) => statusCode,
    )
    expect(questions.length).toBeGreaterThan(1)
    expect(questions).toEqual(await questionsOf(id, shop))
  })
  expect(story.filter((line) => line.startsWith('STATUS'))).toEqual(['STATUS_CHANGED OPERATOR SUCCESS'])
})

test('a request whose answer is lost is told as such, before the question that found it paid', async () => {
  const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('20') })
  const { entries, story } = await settled(id, 'success', shop)
  expect(story.slice(1, 3)).toEqual(['OPERATOR_ASKED SERVICE', 'OPERATOR_DID_NOT_ANSWER SERVICE'])
  expect(entries[2]).toMatchObject({ statusCode: null, durationMs: expect.any(Number) })
})

test('a refused collection has the reason, and the operator as its source', async () => {
  const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('01', '00') })
  const { entries } = await settled(id, 'failed', shop)
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
  expect(withoutAnswers(story).slice(-5)).toEqual([
    'REFUND_REQUESTED MERCHANT',
    'REFUNDED OPERATOR',
    'REFUND_REQUESTED MERCHANT',
    'REFUNDED OPERATOR',
    'STATUS_CHANGED MERCHANT REVERSED',
  ])
  const ids = entries.flatMap(({ refundId }) => refundId ?? [])
  expect(ids).toEqual([first, first, last, last])
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
  expect(entries.filter(({ refundId }) => refundId !== null)).toMatchObject([
    { kind: 'REFUND_REQUESTED', source: 'MERCHANT', refundId: failed },
    { kind: 'REFUND_FAILED', source: 'OPERATOR', status: null, refundId: failed },
  ])
})

test('late money changes the status again, after the callback that told of it', async () => {
  const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('09') })
  await fixture.advance(24 * hour + minute)
  await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('expired'))
  await fixture.answer(id, 'confirm')
  const { story } = await settled(id, 'success', shop)
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
  const told = sent.map(({ eventType, statusCode }) => `${eventType} ${statusCode}`)
  const arrived = hook.receiver.arrived.slice(1).map(({ body }) => JSON.parse(String(body)).event)
  expect(told.slice(0, 2).toSorted()).toEqual(arrived.map((type) => `${type.toUpperCase()} 204`).toSorted())
  expect(told.slice(2)).toEqual(['PAYMENT_RECEIVED 503', 'PAYMENT_RECEIVED 202'])

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
  await settled(id, 'success', shop)
  const stranger = await fixture.merchant()
  const { body } = await fixture.graphql(timelineDocument, { id }, stranger.token)
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

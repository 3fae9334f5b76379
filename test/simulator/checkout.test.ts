import { createHmac, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startAtNoon } from '../kit/noon.ts'
import {
  checkoutClient,
  hour,
  minute,
  openBench,
  openReceiver,
  second,
  send,
  word,
} from '../kit/simulator.ts'

const ordinary = '+22376123456'
const secret = 'sandbox-webhook-secret-b'

test('a wrong key is refused', async () => {
  await using bench = await openBench()
  const answer = await send(bench.url, 'GET', '/op-b/v1/balance', { authorization: 'Bearer other' })
  expect([answer.status, answer.body['code']]).toEqual([401, 'no-matching-api-key'])
})

test('an ordinary number pays its session after 3 s, the fee is ours, a signed event tells', async () => {
  await using bench = await openBench()
  await using receiver = await openReceiver()
  await bench.control('PUT', '/webhook', { url: `${receiver.url}/hooks` })
  const b = checkoutClient(bench.url)
  const made = await b.session(ordinary)
  expect(made.status).toBe(200)
  expect(made.body).toMatchObject({
    amount: '5000',
    currency: 'XOF',
    checkout_status: 'open',
    payment_status: 'processing',
    client_reference: 'REF-B',
    launch_url: `${bench.url}/c/${word(made.body, 'id')}`,
    last_payment_error: null,
  })
  await bench.advance(3 * second)
  const paid = await b.call('GET', `/checkout/sessions/${word(made.body, 'id')}`)
  expect(paid.body).toMatchObject({ checkout_status: 'complete', payment_status: 'succeeded' })
  const call = await receiver.call(1)
  expect([call.method, call.path]).toEqual(['POST', '/hooks'])
  expect(call.body).toEqual({
    id: expect.stringMatching(/^EV_/),
    type: 'checkout.session.completed',
    data: paid.body,
  })
  const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(call.headers['checkout-signature'])) ?? []
  expect(v1).toBe(createHmac('sha256', secret).update(`${t}${call.raw}`).digest('hex'))
  expect((await b.call('GET', '/balance')).body).toEqual({ amount: '50004950', currency: 'XOF' })
  const found = await b.call('GET', `/checkout/sessions?transaction_id=${word(paid.body, 'transaction_id')}`)
  expect(found.body).toEqual(paid.body)
})

test('every session is new, for every key, and is found by reference', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const ids = [(await b.session(ordinary)).body['id'], (await b.session(ordinary)).body['id']]
  expect(new Set(ids).size).toBe(2)
  const { body } = await b.call('GET', '/checkout/sessions/search?client_reference=REF-B')
  expect((body['result'] as { id: string }[]).map((row) => row.id)).toEqual(ids)
  expect((await b.call('GET', '/checkout/sessions/search?client_reference=none')).body).toEqual({
    result: [],
  })
  expect((await b.call('GET', '/checkout/sessions/cos-none')).status).toBe(404)
})

const failures = [
  ['02', '+22370020001', 'insufficient-funds'],
  ['03', '+22370030001', 'payer-not-found'],
  ['04', '+22370040001', 'payer-limit-exceeded'],
  ['05', '+22370050001', 'blocked-account'],
  ['06', '+22370060001', 'payer-authentication-failed'],
  ['07', '+22370070001', 'payer-busy'],
] as const

test.each(failures)('a session for number %s ends cancelled with its error', async (_code, payer, code) => {
  await using bench = await openBench()
  await using receiver = await openReceiver()
  await bench.control('PUT', '/webhook', { url: receiver.url })
  const b = checkoutClient(bench.url)
  const made = await b.session(payer)
  expect(made.status).toBe(200)
  await bench.advance(second)
  const call = await receiver.call(1)
  expect(call.body['type']).toBe('checkout.session.payment_failed')
  expect(call.body['data']).toMatchObject({
    id: made.body['id'],
    checkout_status: 'expired',
    payment_status: 'cancelled',
    last_payment_error: { code },
  })
  expect((await b.call('GET', `/checkout/sessions/${word(made.body, 'id')}`)).body).toEqual(call.body['data'])
})

test('a payer who declines cancels the session; a payer who never comes lets it expire unpaid', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const session = async (payer?: string) => `/checkout/sessions/${word((await b.session(payer)).body, 'id')}`
  const [declined, nobody, shortLived, month] = await Promise.all([
    session('+22370010501'),
    session(),
    session('+22370100201'),
    session('+22370110001'),
  ])
  await bench.advance(5 * second)
  const cancelled = { checkout_status: 'expired', payment_status: 'cancelled', last_payment_error: null }
  expect((await b.call('GET', declined)).body).toMatchObject(cancelled)
  const expired = { checkout_status: 'expired', payment_status: 'processing', last_payment_error: null }
  await bench.advance(2 * minute)
  expect((await b.call('GET', shortLived)).body).toMatchObject(expired)
  expect((await b.call('GET', nobody)).body['checkout_status']).toBe('open')
  await bench.advance(28 * minute)
  expect((await b.call('GET', nobody)).body).toMatchObject(expired)
  await bench.advance(25 * hour)
  expect((await b.call('GET', month)).body['checkout_status']).toBe('open')
})

test('number 12 pays a day late, as its session is still open', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const path = `/checkout/sessions/${word((await b.session('+22370120001')).body, 'id')}`
  await bench.advance(24 * hour)
  expect((await b.call('GET', path)).body['checkout_status']).toBe('open')
  await bench.advance(hour)
  expect((await b.call('GET', path)).body['payment_status']).toBe('succeeded')
})

test('a session is expired by the merchant while open, not once it is paid', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const open = `/checkout/sessions/${word((await b.session('+22370090001')).body, 'id')}`
  for (const time of [1, 2]) {
    const answer = await b.call('POST', `${open}/expire`)
    expect([time, answer.status, answer.body]).toEqual([time, 200, { text: '' }])
  }
  expect((await b.call('GET', open)).body['checkout_status']).toBe('expired')
  const paid = `/checkout/sessions/${word((await b.session(ordinary)).body, 'id')}`
  await bench.advance(3 * second)
  expect((await b.call('POST', `${paid}/expire`)).status).toBe(409)
})

test('a paid session is refunded once', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const path = `/checkout/sessions/${word((await b.session(ordinary)).body, 'id')}`
  expect((await b.call('POST', `${path}/refund`)).body['code']).toBe('checkout-refund-failed')
  await bench.advance(3 * second)
  expect((await b.call('POST', `${path}/refund`)).status).toBe(200)
  expect((await b.call('POST', `${path}/refund`)).status).toBe(200)
  const refunded = await b.call('GET', path)
  expect(refunded.body).toMatchObject({
    payment_status: 'succeeded',
    when_refunded: expect.any(String) as string,
  })
  expect((await b.call('GET', '/balance')).body['amount']).toBe('49999950')
})

test('a payout is final in its answer, the same under the same key, and another body is 409', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const key = randomUUID()
  const made = await b.payout(ordinary, key)
  expect(made.body).toMatchObject({
    status: 'succeeded',
    receive_amount: '5000',
    fee: '50',
    mobile: ordinary,
    client_reference: 'OUT-B',
    payout_error: null,
  })
  expect((await b.payout(ordinary, key)).body).toEqual(made.body)
  const other = await b.payout(ordinary, key, { receive_amount: '6000' })
  expect([other.status, other.body['code']]).toEqual([409, 'idempotency-mismatch'])
  expect((await b.call('GET', `/payout/${word(made.body, 'id')}`)).body).toEqual(made.body)
  const { body } = await b.call('GET', '/payouts/search?client_reference=OUT-B')
  expect(body['result']).toEqual([made.body])
  expect((await b.call('GET', '/balance')).body['amount']).toBe('49994950')
  expect((await b.payout(ordinary, '')).status).toBe(400)
})

test('payouts to test numbers are slow, refused at the door, or fail', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const slow = await b.payout('+22370001001')
  expect(slow.body['status']).toBe('processing')
  await bench.advance(10 * second)
  expect((await b.call('GET', `/payout/${word(slow.body, 'id')}`)).body['status']).toBe('succeeded')
  const key = randomUUID()
  for (const time of [1, 2]) {
    const absent = await b.payout('+22370030001', key)
    expect([time, absent.status, absent.body['code']]).toEqual([time, 400, 'recipient-account-inactive'])
  }
  expect((await b.payout('+22370050001')).body['code']).toBe('recipient-account-blocked')
  const failed = await b.payout('+22370040001')
  expect(failed.body).toMatchObject({
    status: 'failed',
    payout_error: { error_code: 'recipient-limit-exceeded' },
  })
})

test('a payout is reversed with its fee within three days', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const path = `/payout/${word((await b.payout(ordinary)).body, 'id')}`
  const reversals = [await b.call('POST', `${path}/reverse`), await b.call('POST', `${path}/reverse`)]
  expect(reversals.map((answer) => answer.status)).toEqual([200, 200])
  expect((await b.call('GET', path)).body['status']).toBe('reversed')
  expect((await b.call('GET', '/balance')).body['amount']).toBe('50000000')
  const late = `/payout/${word((await b.payout(ordinary)).body, 'id')}/reverse`
  await bench.advance(73 * hour)
  expect((await b.call('POST', late)).body['code']).toBe('payout-reversal-time-limit-exceeded')
})

test('the transactions of a day show fee, balance and session of each movement', async () => {
  startAtNoon()
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const session = await b.session(ordinary)
  await bench.advance(3 * second)
  await b.payout(ordinary)
  const { body } = await b.call('GET', '/transactions')
  const date = new Date().toISOString().slice(0, 10)
  expect(body).toMatchObject({ date, page_info: { has_next_page: false } })
  expect(body['items']).toMatchObject([
    { transaction_type: 'transfer', amount: '50000000', balance: '50000000' },
    {
      transaction_type: 'merchant_payment',
      amount: '5000',
      fee: '50',
      balance: '50004950',
      counterparty_mobile: ordinary,
      client_reference: 'REF-B',
      checkout_api_session_id: session.body['id'],
    },
    {
      transaction_type: 'api_payout',
      amount: '-5000',
      fee: '50',
      balance: '49999900',
      client_reference: 'OUT-B',
    },
  ])
  const { start_cursor: cursor } = body['page_info'] as { start_cursor: string }
  const rest = await b.call('GET', `/transactions?date=${date}&after=${cursor}`)
  expect(rest.body['items']).toEqual((body['items'] as object[]).slice(1))
  expect((await b.call('GET', '/transactions?date=2020-01-01')).body['items']).toEqual([])
})

test('a webhook that is not taken is repeated with growing pauses for three days', async () => {
  await using bench = await openBench()
  await using receiver = await openReceiver()
  await bench.control('PUT', '/webhook', { url: receiver.url, secret: 'other' })
  const b = checkoutClient(bench.url)
  receiver.answers.push(...Array.from({ length: 20 }, () => 500))
  await b.session('+22370000001')
  await bench.advance(second)
  await receiver.call(1)
  const hoursUntil = [0.01, 0.1, 0.2, 1, 3, 7, 13, 25, 28]
  for (const [index, hours] of hoursUntil.entries()) {
    await bench.advance(hours * hour)
    await receiver.call(index + 2)
  }
  await bench.advance(200 * hour)
  expect(receiver.received).toHaveLength(10)
  expect(new Set(receiver.received.map((call) => call.body['id'])).size).toBe(1)
  const times = receiver.received.map((call) =>
    Number(/t=(\d+)/.exec(String(call.headers['checkout-signature']))?.[1]),
  )
  const span = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 3_600
  expect(span).toBeGreaterThan(70)
})

test('a session that breaks the schema is refused', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  for (const more of [
    { amount: 5000 },
    { amount: '0' },
    { amount: '10.5' },
    { success_url: 'javascript:alert(1)' },
    { error_url: '' },
    { restrict_payer_mobile: '76123456' },
    { client_reference: 'x'.repeat(256) },
  ]) {
    const answer = await b.session(undefined, more)
    expect([answer.status, answer.body['code']]).toEqual([422, 'request-validation-error'])
  }
  expect((await b.session(undefined, { currency: 'EUR' })).body['code']).toBe('currency-mismatch')
})

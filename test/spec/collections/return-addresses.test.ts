import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { customer, openFixture } from '../../kit/fixture.ts'

// The addresses to which the page of a hosted checkout sends the customer. Every spelling stands in
// test/shared/web-address.test.ts.

const fixture = await openFixture()
const shop = await fixture.merchant()

const collect = `mutation ($input: CollectPaymentInput!) {
  collectPayment(input: $input) {
    ... on PaymentInitiation { databaseId paymentUrl }
    ... on InvalidInputError { problems { field message } }
  }
}`

/** Asks for a payment at the operator with a payment page, by one of the two APIs. */
async function ask(
  door: 'REST' | 'GraphQL',
  addresses: { return: string; cancel: string },
  reference: string,
) {
  const phone = customer('09')
  if (door === 'REST') {
    const body = { return_url: addresses.return, cancel_url: addresses.cancel }
    const more = { payment_method: 'OperatorB', customer_phone: phone, reference }
    const answer = await fixture.pay(shop, { ...more, ...body })
    const { transaction_id: id, payment_url: page } = answer.body['data'] ?? {}
    return { phone, id, page, problems: answer.body['errors'], status: answer.status }
  }
  const input = {
    amount: 5_000,
    customerPhone: phone,
    paymentMethod: 'OperatorB',
    reference,
    returnUrl: addresses.return,
    cancelUrl: addresses.cancel,
  }
  const answer = await fixture.graphql(collect, { input }, shop.token)
  const { databaseId: id, paymentUrl: page, problems } = answer.body['data'].collectPayment
  return { phone, id, page, problems, status: answer.status }
}

/** Sends the form of the payment page. @returns the status, and where the browser goes next */
async function answerPage(page: string, form: Record<string, string>): Promise<[number, string | null]> {
  const response = await fetch(page, { method: 'POST', body: new URLSearchParams(form), redirect: 'manual' })
  return [response.status, response.headers.get('location')]
}

describe.each(['REST', 'GraphQL'] as const)('by %s', (door) => {
  test.each([
    ['HTTPS://Shop.Example/ok', 'https://shop.example/ok'],
    ['  https://shop.example/ok ', 'https://shop.example/ok'],
    ['https://boutique-é.example/é', 'https://xn--boutique--j4a.example/%C3%A9'],
    ['https://shop.example/merci 🙏?nom=Traoré', 'https://shop.example/merci%20%F0%9F%99%8F?nom=Traor%C3%A9'],
  ])('%j is kept, shown, sent to the operator and visited as %s', async (given, kept) => {
    const reference = randomUUID()
    const addresses = { return: given, cancel: `${given}#non` }
    const { phone, id, page } = await ask(door, addresses, reference)
    const cancelled = new URL(`${given}#non`).href
    expect((await fixture.record(shop, id))['request_data']).toMatchObject({
      return_url: kept,
      cancel_url: cancelled,
    })
    const [session] = await fixture.seen(await fixture.correlationOf(id))
    expect(JSON.parse(session?.body ?? '{}')).toMatchObject({ success_url: kept, error_url: cancelled })
    expect(await answerPage(page, { answer: 'confirm', phone, pin: '0000' })).toEqual([303, kept])

    const other = await ask(door, addresses, randomUUID())
    expect(await answerPage(other.page, { answer: 'cancel' })).toEqual([303, cancelled])
  })

  test.each([
    ['one slash', 'https:/shop.example/ok'],
    ['backslashes', 'https:\\\\shop.example\\ok'],
    ['a tab inside', 'https://shop.example/o\tk'],
    ['a line break at the end', 'https://shop.example/ok\n'],
    ['a password', 'https://awa:secret@shop.example/'],
    ['port 0', 'https://shop.example:0/'],
    ['more than 2,048 characters in ASCII', `https://shop.example/${'é'.repeat(400)}`],
  ])('%s: 400 names the field, nothing is recorded, and the reference stays free', async (_name, given) => {
    const reference = randomUUID()
    const before = await fixture.rowCounts()
    const { status, problems } = await ask(door, { return: given, cancel: given }, reference)
    expect(status).toBe(door === 'REST' ? 400 : 200)
    const fields = problems.map(({ field }: { field: string }) => field)
    expect(fields).toEqual(door === 'REST' ? ['return_url', 'cancel_url'] : ['returnUrl', 'cancelUrl'])
    expect(await fixture.rowCounts()).toEqual(before)
    const good = 'https://shop.example/'
    expect((await ask(door, { return: good, cancel: good }, reference)).page).toMatch(/^http/)
  })
})

test('two spellings of one address under one Idempotency-Key are the same request', async () => {
  const body = { payment_method: 'OperatorB', amount: 5_000, customer_phone: customer('09') }
  const send = (address: string) =>
    fixture.rest('POST', '/pay', {
      token: shop.token,
      headers: { 'Idempotency-Key': 'one-address' },
      body: { ...body, return_url: address },
    })
  const first = await send('https://shop.example/é')
  expect(first.status).toBe(202)
  expect((await send(' HTTPS://shop.example/%C3%A9')).body).toEqual(first.body)
  expect((await send('https://shop.example/e')).status).toBe(400)
})

test('an endpoint for events is kept as the standard writes its address', async () => {
  const register = (url: string) =>
    fixture.rest('POST', '/webhooks', { token: shop.token, body: { url, events: ['payment_received'] } })
  const made = await register(' HTTP://LocalHost:4021/é ')
  expect([made.status, made.body['data']?.url]).toEqual([201, 'http://localhost:4021/%C3%A9'])
  const wrong = [
    'http:/localhost:4021/',
    'http:\\\\localhost:4021',
    'http://@localhost:4021/',
    'http://localhost:0/',
  ]
  for (const url of wrong) {
    const { status, body } = await register(url)
    expect([status, body['errors'].map(({ field }: { field: string }) => field)]).toEqual([400, ['url']])
  }
})

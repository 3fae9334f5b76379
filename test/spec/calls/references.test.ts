import { describe, expect, test } from 'vitest'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

// A merchant's reference names one payment, however a program spells the characters that a person sees.

const fixture = await openFixture()
const shop = await fixture.merchant()
await fixture.fund(shop, 1_000_000)

const composed = (name: string) => `caf\u00e9 ${name}`
const decomposed = (name: string) => `cafe\u0301 ${name}`

/** The bodies of the doors of REST that take a reference. */
const doors = {
  '/pay': { amount: 500, customer_phone: customer('00'), payment_method: 'OperatorA' },
  '/deposit': { amount: 1_000, customer_phone: customer('00'), payment_method: 'OperatorA' },
  '/payouts': { amount: 1_000, destination_phone: customer('00'), payment_method: 'OperatorA' },
}
const paths = Object.keys(doors) as (keyof typeof doors)[]

const post = (path: keyof typeof doors, reference: string) =>
  fixture.rest('POST', path, { token: shop.token, body: { ...doors[path], reference } })
const get = (path: string) => fixture.rest('GET', path, { token: shop.token })
const ask = (query: string, variables: object) => fixture.graphql(query, variables, shop.token)

describe('a decomposed reference', () => {
  test.each(paths)('is the composed one at %s: the second payment is 409', async (path) => {
    const name = path.slice(1)
    const first = await post(path, decomposed(name))
    expect([200, 201, 202]).toContain(first.status)
    expect(first.body['data'].reference).toBe(composed(name))
    expect((await post(path, composed(name))).status).toBe(409)
  })

  test('names a refund in its composed form', async () => {
    const paid = await fixture.paid(shop, { customer_phone: customer('00') })
    await eventually(async () => {
      expect(await fixture.statusOf(shop, paid['transaction_id'])).toBe('success')
    })
    const query = `mutation ($id: ID!, $reference: String!) {
      refundTransaction(id: $id, reference: $reference) { ... on PaymentInitiation { reference } }
    }`
    const { body } = await ask(query, { id: String(paid['transaction_id']), reference: decomposed('back') })
    expect(body['data'].refundTransaction).toEqual({ reference: composed('back') })
  })

  test('finds the payment by its status, by the lists of REST and by GraphQL', async () => {
    await post('/pay', composed('found'))
    await post('/payouts', composed('found'))
    const spelled = encodeURIComponent(decomposed('found'))
    expect((await get(`/payment/status/${spelled}`)).status).toBe(200)
    for (const list of ['transactions', 'payouts']) {
      const { body } = await get(`/${list}?reference=${spelled}`)
      expect(body['data'][list]).toMatchObject([{ reference: composed('found') }])
    }
    const query = `query ($reference: String!) {
      transaction(reference: $reference) { reference }
      payout(reference: $reference) { reference }
      paymentStatus(reference: $reference) { state }
      transactions(filter: { reference: $reference }) { nodes { reference } }
      payouts(filter: { reference: $reference }) { nodes { reference } }
    }`
    const { body } = await ask(query, { reference: decomposed('found') })
    const row = { reference: composed('found') }
    expect(body['data']).toMatchObject({
      transaction: row,
      payout: row,
      paymentStatus: { state: expect.any(String) },
      transactions: { nodes: [row] },
      payouts: { nodes: [row] },
    })
  })

  test('may have more than 100 characters where its composed form has 100', async () => {
    const { status, body } = await post('/pay', 'e\u0301'.repeat(100))
    expect([status, body['data'].reference]).toEqual([202, '\u00e9'.repeat(100)])
  })

  test('is refused where its composed form has more than 100 characters', async () => {
    const { status, body } = await post('/pay', '\u0958'.repeat(51))
    expect([status, body['errors'][0].field]).toEqual([400, 'reference'])
  })
})

const unclear = {
  'a space behind': 'order-7 ',
  'a space before': ' order-7',
  'a no-break space': 'order-7\u00a0',
  'a narrow no-break space': '\u202forder-7',
  'a wide space': 'order-7\u3000',
  'a variation selector': 'order-7\ufe0f',
  'a Hangul filler': 'order-7\u3164',
  'a joiner': 'order-7\u200d',
}

describe.each(Object.entries(unclear))('a reference with %s', (_words, reference) => {
  test.each(paths)('is refused at %s, and leaves nothing', async (path) => {
    const before = await fixture.rowCounts()
    const { status, body } = await post(path, reference)
    expect([status, body['errors']?.map((each: { field: string }) => each.field)]).toEqual([
      400,
      ['reference'],
    ])
    expect(await fixture.rowCounts()).toEqual(before)
  })

  test.each(['/payment/status/', '/transactions?reference=', '/payouts?reference='])(
    'is refused by the look-up %s',
    async (path) => {
      const { status, body } = await get(path + encodeURIComponent(reference))
      expect([status, body['errors']?.[0].field]).toEqual([400, 'reference'])
    },
  )

  test('is refused by a mutation of GraphQL', async () => {
    const query = `mutation ($reference: String!) {
      collectPayment(input: {
        amount: 500, customerPhone: "70000000", paymentMethod: OperatorA, reference: $reference
      }) { __typename ... on InvalidInputError { problems { field } } }
    }`
    const { body } = await ask(query, { reference })
    expect(body['data'].collectPayment).toEqual({
      __typename: 'InvalidInputError',
      problems: [{ field: 'reference' }],
    })
  })
})

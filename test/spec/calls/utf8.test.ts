import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { beforeAll, describe, expect, test } from 'vitest'
import type { TestMerchant } from '../../kit/app.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

// Bytes that are not UTF-8 would all be read as U+FFFD: two references as one, and a payment as not found.

const fixture = await openFixture()
let shop: TestMerchant
beforeAll(async () => {
  shop = await fixture.merchant()
  await fixture.paid(shop, { reference: 'café' })
})

/** Sends a request whose address has these characters, some of which `fetch` would encode. */
async function get(path: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const sent = request(`${fixture.url}/`, { path, headers: { authorization: `Bearer ${shop.token}` } })
  sent.end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const text = (await answer.toArray()).join('')
  return { status: answer.statusCode ?? 0, body: text.startsWith('{') ? JSON.parse(text) : { text } }
}

describe('an address', () => {
  const wrong = ['caf%E9', 'caf%c3', 'caf%C3%41', '%ED%A0%80', '%00%FF']

  test.each(wrong)('that is not UTF-8 is refused: %s', async (name) => {
    const rest = [
      `transactions?reference=${name}`,
      `transactions?x${name}=1`,
      `exports/transactions.csv?reference=${name}`,
      `payment/status/${name}`,
    ]
    for (const path of rest) {
      const { status, body } = await get(`/merchant/api/${path}`)
      const errors = [{ field: '', message: 'The address is not UTF-8' }]
      expect([path, status, body['errors']]).toEqual([path, 400, errors])
    }
    const query = '{__typename}'
    for (const parameters of [
      `query=${query}&operationName=${name}`,
      `query=${query}&variables={"x":"${name}"}`,
    ]) {
      const { status, body } = await get(`/graphql?${parameters.replaceAll('"', '%22')}`)
      expect([status, body['errors']]).toMatchObject([400, [{ extensions: { code: 'BAD_REQUEST' } }]])
    }
  })

  test.each(['caf%C3%A9', '%63af%c3%a9'])('in UTF-8 finds the payment: %s', async (name) => {
    const list = await get(`/merchant/api/transactions?reference=${name}`)
    expect(list.body).toMatchObject({ data: { transactions: [{ reference: 'café' }] } })
  })

  test.each([
    ['variables', '{"x":1,"x":2}', /The parameter variables names "x" twice/],
    ['variables', `${'['.repeat(21)}${']'.repeat(21)}`, /The parameter variables is nested deeper/],
    ['extensions', '{"x":{"y":1,"\\u0079":2}}', /The parameter extensions names "y" twice/],
    ['extensions', '{', /The parameter extensions is not well-formed JSON/],
  ])('of GraphQL with %s %s is refused', async (name, json, words) => {
    const { status, body } = await get(`/graphql?query={__typename}&${name}=${encodeURIComponent(json)}`)
    const error = { message: expect.stringMatching(words), extensions: { code: 'BAD_REQUEST' } }
    expect([status, body['errors']]).toMatchObject([400, [error]])
  })

  test('of GraphQL may have the mark of UTF-8 before its variables', async () => {
    const { status } = await get('/graphql?query={__typename}&variables=%EF%BB%BF{}')
    expect(status).toBe(200)
  })
})

describe('a type of content', () => {
  const send = async (path: string, type: string, fields: object) => {
    const headers = { authorization: `Bearer ${shop.token}`, 'content-type': type }
    const answer = await fetch(fixture.url + path, { method: 'POST', headers, body: JSON.stringify(fields) })
    return answer.status
  }
  const atBoth = (type: string) =>
    Promise.all([
      send('/merchant/api/pay', type, { amount: 'none' }),
      send('/graphql', type, { query: '{ nothing }' }),
    ])

  test.each([
    'application/json; charset=utf-16',
    'application/json;charset=ISO-8859-1',
    'application/json; charset=utf-8; Charset = latin1',
    'application/json; charset=',
    'application/json; charset="utf-8',
    'application/x-json',
    'application /json',
    '+json',
    'text/plain',
  ])('is refused by both doors: %s', async (type) => {
    expect(await atBoth(type)).toEqual([415, 415])
  })

  test.each([
    'application/json',
    'application/json;charset=utf-8',
    'application/json; charset="UTF-8"',
    'Application/JSON ; Charset=UTF8',
    'application/json; profile="x"',
    'application/graphql+json',
  ])('is read by both doors: %s', async (type) => {
    expect(await atBoth(type)).toEqual([400, 200])
  })
})

describe('the form of a payment link', () => {
  const phone = customer('11').slice(-8)
  const fields = `amount=5000&phone=${phone}&operator=OperatorA`

  test.each([
    ['an operator twice', `${fields}&operator=OperatorB`],
    ['a token twice', `${fields}&token=${'a'.repeat(32)}&token=${'b'.repeat(32)}`],
    ['an encoded byte that is not UTF-8', `${fields}&x=%E9`],
    ['a byte that is not UTF-8', `${fields}&x=\xe9`],
  ])('with %s is shown again, and pays nothing', async (_what, form) => {
    const link = await fixture.rest('POST', '/payment-links', {
      token: shop.token,
      body: { title: 'Don', amount: null },
    })
    const before = await fixture.rowCounts()
    const answer = await fetch(link.body['data'].url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new Uint8Array(Buffer.from(form, 'latin1')),
      redirect: 'manual',
    })
    expect([answer.status, await fixture.rowCounts()]).toEqual([422, before])
  })
})

import { beforeAll, describe, expect, test } from 'vitest'
import type { TestMerchant } from '../kit/app.ts'
import { customer, openFixture } from '../kit/fixture.ts'
import { limits } from '../../src/shared/limits.ts'

const fixture = await openFixture()
let shop: TestMerchant
beforeAll(async () => {
  shop = await fixture.merchant()
})

const create = `mutation ($input: CreateBatchInput!) {
  createBatch(input: $input) { __typename }
}`
const row = (more: object = {}) => ({
  name: 'Awa',
  account: customer('11'),
  amount: 2_000,
  paymentMethod: 'OperatorA',
  ...more,
})
const francs = 'must be a whole number of francs: XOF has no minor unit'

interface Refused {
  message: string
  extensions: { code: string; problems?: { field: string; message: string }[] }
}

async function errorsOf(query: string, variables: object): Promise<Refused[]> {
  const before = await fixture.rowCounts()
  const { body } = await fixture.graphql(query, variables, shop.token)
  expect(body['data']).toBeUndefined()
  expect(await fixture.rowCounts()).toEqual(before)
  return body['errors'] as Refused[]
}

describe('a variable that does not fit is refused with its place', () => {
  test.each<[string, object, string, string]>([
    ['a fraction', row({ amount: 2_000.5 }), '.amount', francs],
    ['text for a number', row({ amount: '2000' }), '.amount', francs],
    [
      'an unknown operator',
      row({ paymentMethod: 'OperatorX' }),
      '.paymentMethod',
      '"OperatorX" does not exist',
    ],
    ['null for a required field', row({ amount: null }), '.amount', 'not to be null'],
    ['a missing field', { name: 'Awa', account: '70000001' }, '', 'required field "amount"'],
    ['an unknown field', row({ sum: 1 }), '', 'unknown field "sum"'],
    ['a list for text', row({ name: ['Awa'] }), '.name', 'String cannot represent'],
  ])('%s', async (_what, wrong, field, reason) => {
    const errors = await errorsOf(create, { input: { recipients: [row(), row(), row(), wrong] } })
    const place = `input.recipients[3]${field}`
    expect(errors).toMatchObject([
      { extensions: { problems: [{ field: place, message: expect.stringContaining(reason) }] } },
    ])
    const [{ message, extensions } = { message: '', extensions: { problems: [] } }] = errors
    expect(message).toBe(`${place}: ${extensions.problems?.[0]?.message}`)
  })

  test('in an operation that is not compiled, because it has a directive', async () => {
    const query = create.replace('{ __typename }', '{ __typename @skip(if: false) }')
    const [error] = await errorsOf(query, { input: { recipients: [row({ amount: 0.5 })] } })
    expect(error?.message).toBe(`input.recipients[0].amount: ${francs}`)
  })

  test('in a variable inside of an object, and in one that is left out', async () => {
    const query = `mutation ($sum: Amount!, $to: String!) { createBatch(input: {
      recipients: [{ name: "Awa", account: $to, amount: $sum }]
    }) { __typename } }`
    const errors = await errorsOf(query, { sum: 0.5 })
    expect(errors.map(({ message }) => message.split(':')[0])).toEqual(['sum', 'to'])
  })

  test('in a subscription', async () => {
    const query = 'subscription ($after: String) { transactionChanged(after: $after) { reference } }'
    const answer = await fetch(`${fixture.url}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${shop.token}`,
        accept: 'text/event-stream',
      },
      body: JSON.stringify({ query, variables: { after: 7 } }),
    })
    expect(await answer.text()).toContain('"message":"after: String cannot represent a non string value: 7"')
  })

  test('where many are wrong, the first five are told', async () => {
    const recipients = Array.from({ length: 300 }, () => row({ amount: 0.5 }))
    const errors = await errorsOf(create, { input: { recipients } })
    expect(errors.map(({ extensions }) => extensions.problems?.[0]?.field)).toEqual(
      Array.from({ length: limits.graphqlErrorsMax }, (_, index) => `input.recipients[${index}].amount`),
    )
  })

  test('a long value is not repeated whole', async () => {
    const errors = await errorsOf(create, {
      input: { recipients: [row({ amount: 1, ['x'.repeat(5_000)]: 1 })] },
    })
    expect(JSON.stringify(errors).length).toBeLessThan(2_000)
  })
})

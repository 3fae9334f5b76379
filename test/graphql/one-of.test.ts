import { isInputObjectType } from 'graphql'
import { beforeAll, describe, expect, test } from 'vitest'
import { schema } from '../../src/resources/schema.ts'
import { openLimits, type TestMerchant } from '../kit/app.ts'
import { eventually } from '../kit/eventually.ts'
import { openFixture } from '../kit/fixture.ts'

// Inputs of which a client gives exactly one field. Each field alone means the same as the older arguments;
// two fields, none and null are refused by the name of the argument, and leave nothing behind.

const fixture = await openFixture(openLimits)
let shop: TestMerchant
let made: Record<string, number> = {}
const reference = 'facture-1'

beforeAll(async () => {
  shop = await fixture.merchant()
  const { token } = shop
  const post = async (path: string, body: object) => {
    const answer = await fixture.rest('POST', path, { token, body })
    expect(answer.status, path).toBe(201)
    return answer.body['data'].id as number
  }
  await fixture.fund(shop, 1_000_000)
  const { transaction_id: transaction } = await fixture.paid(shop, { reference })
  const mobile = { destination_phone: '70000001', payment_method: 'OperatorA' }
  const payee = { account: '70000001', payment_method: 'OperatorA' }
  made = {
    transaction: transaction as number,
    payout: await post('/payouts', { amount: 1_000, ...mobile, reference }),
    webhook: await post('/webhooks', { url: 'https://93.184.216.34/a', events: ['payment_received'] }),
    beneficiary: await post('/beneficiaries', { name: 'Awa', ...payee }),
    closed: await post('/beneficiaries', { name: 'Ba', ...payee }),
  }
  await fixture.rest('PUT', `/beneficiaries/${made['closed']}`, { token, body: { is_active: false } })
})

interface OneOf {
  /** An operation with a literal or a variable as the value of the input. */
  operation: (given: string, older?: string) => string
  kind: 'query' | 'mutation'
  /** A value of each field, and the older arguments that mean the same. */
  fields: () => Record<string, { value: unknown; older: string }>
}

const payoutOf = (given: string, older = '') =>
  `createPayout(input: { amount: 1000, ${given && `destination: ${given}`} ${older} }) {
    __typename ... on Payout { amount destinationPhone paymentMethod beneficiaryId }
    ... on InvalidInputError { problems { field } } }`

const inputs: Readonly<Record<string, OneOf>> = {
  TransactionLookup: {
    kind: 'query',
    operation: (given, older = '') =>
      `transaction(${given && `by: ${given}`} ${older}) { databaseId reference }`,
    fields: () => ({
      id: { value: String(made['transaction']), older: `databaseId: ${made['transaction']}` },
      reference: { value: reference, older: `reference: "${reference}"` },
    }),
  },
  PayoutLookup: {
    kind: 'query',
    operation: (given, older = '') => `payout(${given && `by: ${given}`} ${older}) { databaseId reference }`,
    fields: () => ({
      id: { value: String(made['payout']), older: `id: ${made['payout']}` },
      reference: { value: reference, older: `reference: "${reference}"` },
    }),
  },
  EventsToReplay: {
    kind: 'mutation',
    operation: (given, older = '') =>
      `replayEvents(webhookId: ${made['webhook']}, ${given && `events: ${given}`} ${older}) {
        __typename ... on EventReplay { count } ... on InvalidInputError { problems { field } } }`,
    fields: () => ({
      range: { value: { from: 1, to: 5 }, older: 'from: 1, to: 5' },
      ids: { value: ['evt_1'], older: 'ids: ["evt_1"]' },
    }),
  },
  PayoutDestination: {
    kind: 'mutation',
    operation: payoutOf,
    fields: () => ({
      mobile: {
        value: { phone: '70000001', paymentMethod: 'OperatorA' },
        older: 'destinationPhone: "70000001", paymentMethod: OperatorA',
      },
      beneficiaryId: {
        value: String(made['beneficiary']),
        older: `beneficiaryId: ${made['beneficiary']}`,
      },
    }),
  },
}

test('every input with exactly one field is tried here, with each of its fields', () => {
  const types = Object.values(schema.getTypeMap()).filter((type) => isInputObjectType(type) && type.isOneOf)
  expect(types.map(({ name }) => name).toSorted()).toEqual(Object.keys(inputs).toSorted())
  for (const type of types)
    expect(isInputObjectType(type) && Object.keys(type.getFields()).toSorted(), type.name).toEqual(
      Object.keys(inputs[type.name]?.fields() ?? {}).toSorted(),
    )
})

/** Writes a value as a literal; a word of an enum stands without quotes. */
function literal(value: unknown): string {
  return JSON.stringify(value)
    .replaceAll(/"(\w+)":/g, '$1: ')
    .replaceAll(/"(Operator[A-D])"/g, '$1')
}

async function ask(kind: string, operation: string, variables: object = {}) {
  const { body } = await fixture.graphql(`${kind} ${operation}`, variables, shop.token)
  return body
}

describe.each(Object.entries(inputs))('%s', (type, { kind, operation, fields }) => {
  test('each field alone means what the older arguments mean, as a literal and as a variable', async () => {
    for (const [name, { value, older }] of Object.entries(fields())) {
      const before = await ask(kind, `{ ${operation('', older)} }`)
      expect(before['errors'], name).toBeUndefined()
      expect(JSON.stringify(before)).not.toContain('Error')
      const given = { [name]: value }
      expect((await ask(kind, `{ ${operation(literal(given))} }`))['data'], name).toEqual(before['data'])
      const named = await ask(kind, `($given: ${type}) { ${operation('$given')} }`, { given })
      expect(named['data'], name).toEqual(before['data'])
    }
  })

  test('two fields, none, and null are refused by name, and leave nothing behind', async () => {
    // The payouts of the test before are sent in the meantime: their requests must not be counted here.
    await eventually(async () => {
      const { rows } = await fixture.database.owner.query(`SELECT FROM payout WHERE status = 'pending'`)
      return rows.length === 0
    })
    const counts = await fixture.rowCounts()
    const [[one, { value: first }], [other, { value: second }]] = Object.entries(fields()) as unknown as [
      [string, { value: unknown }],
      [string, { value: unknown }],
    ]
    const wrong = [{}, { [one]: first, [other]: second }, { [one]: null }, { [one]: null, [other]: second }]
    for (const given of wrong) {
      const literally = await ask(kind, `{ ${operation(literal(given))} }`)
      const inOne = expect.stringMatching(`"${type}", exactly one field must be specified`)
      expect(literally['errors'][0], literal(given)).toMatchObject({ message: inOne, locations: [{}] })
      const named = await ask(kind, `($given: ${type}) { ${operation('$given')} }`, { given })
      const problems = [{ field: expect.stringMatching(/^given(\.|$)/), message: inOne }]
      expect(named['errors'][0], literal(given)).toMatchObject({ extensions: { problems } })
      for (const { data } of [literally, named]) expect(data).toBeUndefined()
    }
    const { value, older } = fields()[one] as { value: unknown; older: string }
    const both = await ask(kind, `{ ${operation(literal({ [one]: value }), older)} }`)
    const neither = await ask(kind, `{ ${operation('')} }`.replace('( )', ''))
    expect(JSON.stringify(both)).toMatch(/"field":"(by|events|destination)"/)
    expect(JSON.stringify(neither)).toMatch(/"field":"(by|events|paymentMethod)"/)
    expect(await fixture.rowCounts()).toEqual(counts)
  })
})

test.each([
  ['a range that ends before it begins', '{ range: { from: 2, to: 1 } }', ['events.range.to']],
  ['a range of too many events', '{ range: { from: 1, to: 10001 } }', ['events.range.to']],
  ['a range that begins before the log', '{ range: { from: 0, to: 1 } }', ['events.range.from']],
  ['no ids', '{ ids: [] }', ['events.ids']],
  ['ids of no events', '{ ids: ["evt_1", "7"] }', ['events.ids[1]']],
])('a replay of %s is refused by name', async (_what, given, problems) => {
  const { data } = await ask('mutation', `{ ${inputs['EventsToReplay']?.operation(given)} }`)
  expect(data.replayEvents.problems).toEqual(problems.map((field) => ({ field })))
})

test.each([
  [
    'a foreign number',
    () => '{ mobile: { phone: "+33612345678", paymentMethod: OperatorA } }',
    'mobile.phone',
  ],
  ['a closed beneficiary', () => `{ beneficiaryId: ${made['closed']} }`, 'beneficiaryId'],
])('a payout to %s is refused by name', async (_what, given, field) => {
  const { data } = await ask('mutation', `{ ${payoutOf(given())} }`)
  expect(data.createPayout.problems).toEqual([{ field: `destination.${field}` }])
})

test('REST does not know `destination`: its fields stay flat', async () => {
  const body = {
    amount: 1_000,
    destination: { beneficiaryId: made['closed'] },
    destination_phone: '70000001',
    payment_method: 'OperatorA',
  }
  const answer = await fixture.rest('POST', '/payouts', { token: shop.token, body })
  expect(answer).toMatchObject({ status: 201, body: { data: { destination_phone: '+22370000001' } } })
})

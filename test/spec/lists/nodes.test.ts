import { isInterfaceType, isObjectType } from 'graphql'
import { beforeAll, expect, test, vi } from 'vitest'
import { schema } from '../../../src/resources/schema.ts'
import { customer, openFixture } from '../../kit/fixture.ts'
import { eventually } from '../../kit/eventually.ts'

// The queries `node` and `nodes` find every object that has a global id, and give null for any other id.

const fixture = await openFixture()
const shop = await fixture.merchant()

const idOf = (text: string) => Buffer.from(text).toString('base64')
const ask = async (query: string, variables: object, { token } = shop) => {
  const { data, errors } = (await fixture.graphql(query, variables, token)).body
  return { data, errors }
}
const nodes = (ids: readonly string[], by = shop) =>
  ask('query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }', { ids }, by)
const node = (id: string) => ask('query ($id: ID!) { node(id: $id) { __typename id } }', { id })

/** For each type with a global id, a query that reads an object of it. */
const places: Record<string, string> = {
  ApiKey: '{ apiKeys(first: 1) { nodes { id } } }',
  AuditEntry: '{ auditLog(first: 1) { nodes { id } } }',
  Batch: '{ batches(first: 1) { nodes { id } } }',
  BatchRecipient: '{ batches(first: 1) { nodes { recipients(first: 1) { nodes { id } } } } }',
  Beneficiary: '{ beneficiaries(first: 1) { nodes { id } } }',
  Merchant: '{ me { merchant { id } } }',
  PaymentLink: '{ paymentLinks(first: 1) { nodes { id } } }',
  Payout: '{ payouts(first: 1) { nodes { id } } }',
  Settings: '{ settings { id } }',
  TeamMember: '{ members(first: 1) { nodes { id } } }',
  Transaction: '{ transactions(first: 1) { nodes { id } } }',
  Webhook: '{ webhooks(first: 1) { nodes { id } } }',
  WebhookDelivery: '{ webhooks(first: 1) { nodes { deliveries(first: 1) { nodes { id } } } } }',
}

async function idAt(query: string): Promise<string> {
  const answer = JSON.stringify(await ask(query, {}))
  const [, id] = /"id":"([^"]+)"/.exec(answer) ?? []
  if (id === undefined) throw new Error(`${query} gives ${answer}`)
  return id
}

beforeAll(async () => {
  const post = async (path: string, body: object) => {
    const answer = await fixture.rest('POST', path, { token: shop.token, body })
    expect(answer.body).toMatchObject({ success: true })
    return answer.body['data']
  }
  await fixture.fund(shop, 10_000)
  const payee = { payment_method: 'OperatorA', amount: 1_000 }
  const url = 'http://127.0.0.1:9/'
  const { id } = await post('/webhooks', { url, events: ['payment_received'] })
  await post(`/webhooks/${id}/test`, {})
  await fixture.paid(shop)
  await post('/payouts', { ...payee, destination_phone: customer('00') })
  await post('/bulk/batches', { recipients: [{ ...payee, name: 'Awa', account: customer('00') }] })
  await post('/beneficiaries', { name: 'Awa', account: customer('00'), payment_method: 'OperatorA' })
  await post('/payment-links', { title: 'Cours', amount: 5_000 })
  await post('/team/invite', { name: 'Awa', email: 'awa@example.com', role: 'viewer' })
})

test('each type that implements Node has an object that node and nodes find by its id', async () => {
  const face = schema.getType('Node')
  const types = isInterfaceType(face)
    ? schema
        .getPossibleTypes(face)
        .map(({ name }) => name)
        .toSorted()
    : []
  expect(Object.keys(places)).toEqual(types)
  const ids = await Promise.all(types.map((type) => eventually(() => idAt(places[type] ?? ''))))
  const expected = types.map((type, index) => ({ __typename: type, id: ids[index] }))
  expect(await nodes(ids)).toEqual({ data: { nodes: expected } })
  expect(await Promise.all(ids.map((id) => node(id)))).toEqual(
    expected.map((one) => ({ data: { node: one } })),
  )
  const other = await fixture.merchant()
  expect(await nodes(ids, other)).toEqual({ data: { nodes: ids.map(() => null) } })
})

test('an id that the schema calls global names an object that node finds', () => {
  // The types whose `id` is that of another type, which is a Node.
  const naming = ['Approver', 'DepositApproval', 'ExistingPayout', 'ExistingTransaction', 'PaymentInitiation']
  const other = new Set([...naming, 'RemovedWebhook', 'Self'])
  const wrong = Object.values(schema.getTypeMap()).filter((type) => {
    const id = isObjectType(type) && type.getFields()['id']
    if (!id || other.has(type.name)) return false
    return /global/i.test(id.description ?? '') !== type.getInterfaces().some(({ name }) => name === 'Node')
  })
  expect(wrong.map(({ name }) => name)).toEqual([])
})

const strange: readonly [string, string][] = [
  ['a scalar', idOf('Int:1')],
  ['a type that does not exist', idOf('Payment:1')],
  ['a root type', idOf('Query:1')],
  ['an interface', idOf('Node:1')],
  ['a union', idOf('CreatePayoutResult:1')],
  ['an enum', idOf('Currency:1')],
  ['an input', idOf('CreatePayoutInput:1')],
  ['a type that no id loads', idOf('LedgerEntry:1')],
  ['the prototype', idOf('__proto__:1')],
  ['the constructor', idOf('constructor:1')],
  ['a field of every object', idOf('toString:1')],
  ['a type of introspection', idOf('__Type:1')],
  ['no base64', '%%%'],
  ['base64 that is cut', idOf('Payout:1').slice(0, -1)],
  ['base64 of bytes that are no text', '//79/A=='],
  ['base64 of nothing', '===='],
  ['no text', ''],
  ['the id in REST', '1'],
  ['no number', idOf('Payout:')],
  ['no type', idOf(':1')],
  ['no colon', idOf('Payout')],
  ['a power of ten', idOf('Payout:1e3')],
  ['a leading zero', idOf('Payout:01')],
  ['a fraction', idOf('Payout:1.0')],
  ['a hexadecimal number', idOf('Payout:0x1')],
  ['a space', idOf('Payout: 1')],
  ['a line break', idOf('Payout:1\n')],
  ['an id within an id', idOf(`Payout:${idOf('Payout:1')}`)],
  ['two colons', idOf('Payout:1:1')],
  ['a negative number', idOf('Payout:-1')],
  ['zero', idOf('Payout:0')],
  ['a number beyond 32 bits', idOf('Batch:4294967297')],
  ['a number beyond 64 bits', idOf('Payout:18446744073709551617')],
  ['a number of 200 digits', idOf(`Payout:${'9'.repeat(200)}`)],
  ['another case', idOf('payout:1')],
]

test('any other id is null, the ids beside it are answered, and the log has no error', async () => {
  const log = vi.spyOn(fixture.app.services.log, 'error')
  const merchant = await idAt(places['Merchant'] ?? '')
  const found = { __typename: 'Merchant', id: merchant }
  const alone = await Promise.all(strange.map(async ([name, id]) => [name, await node(id)]))
  expect(alone).toEqual(strange.map(([name]) => [name, { data: { node: null } }]))
  const beside = await nodes([merchant, ...strange.map(([, id]) => id), merchant])
  expect(beside).toEqual({ data: { nodes: [found, ...strange.map(() => null), found] } })
  const made = ['{ balance { id } }', '{ me { id } }']
  for (const query of made) expect(await node(await idAt(query))).toEqual({ data: { node: null } })
  expect(log).not.toHaveBeenCalled()
})

test('a type beyond the scopes of the token is refused at its place, the other ids are not', async () => {
  const { apiKey, apiSecret } = shop
  const headers = { 'X-API-Key': apiKey, 'X-API-Secret': apiSecret }
  const { body } = await fixture.rest('POST', '/auth', { headers, body: { scopes: ['payout'] } })
  const [payout, webhook] = [await idAt(places['Payout'] ?? ''), await idAt(places['Webhook'] ?? '')]
  expect(await nodes([payout, webhook, idOf('Int:1')], { ...shop, token: body['data'].token })).toMatchObject(
    {
      data: { nodes: [{ __typename: 'Payout', id: payout }, null, null] },
      errors: [{ path: ['nodes', 1], extensions: { code: 'FORBIDDEN', requiredScopes: ['webhooks'] } }],
    },
  )
})

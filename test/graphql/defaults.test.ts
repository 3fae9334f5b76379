import { Kind, parse, print, visit } from 'graphql'
import { beforeAll, describe, expect, test } from 'vitest'
import { printSdl } from '../../src/graphql/print.ts'
import { schema } from '../../src/resources/schema.ts'
import { openLimits, type TestMerchant } from '../kit/app.ts'
import { openFixture } from '../kit/fixture.ts'

// Every default that the printed schema states: a request that leaves the argument or the field out, one that
// gives null, and one that gives the default itself have the same effect and the same answer.

const fixture = await openFixture(openLimits)
let shop: TestMerchant
const ids: Record<string, number> = {}

beforeAll(async () => {
  shop = await fixture.merchant()
  await fixture.fund(shop, 100_000)
  const post = async (path: string, body: object) => {
    const answer = await fixture.rest('POST', path, { token: shop.token, body })
    expect(answer.status, path).toBe(201)
    return answer.body['data'].id as number
  }
  const recipients = [{ name: 'Awa', account: '70000001', amount: 2_000, payment_method: 'OperatorA' }]
  ids['batch'] = await post('/bulk/batches', { title: 'Salaires', recipients })
  ids['webhook'] = await post('/webhooks', {
    url: 'https://93.184.216.34/hook',
    events: ['payout_completed'],
  })
  for (let nth = 0; nth < 23; nth += 1) {
    ids['link'] = await post('/payment-links', { title: `Lien ${nth}` })
    await post('/beneficiaries', { name: `B${nth}`, account: '70000001', payment_method: 'OperatorA' })
    if (nth > 0) continue
    const closed = { token: shop.token, body: { is_active: false } }
    await fixture.rest('PUT', `/payment-links/${ids['link']}`, closed)
    await fixture.rest('PUT', '/beneficiaries/1', closed)
  }
  await fixture.pay(shop)
})

interface Default {
  /** The type and the field, or the input type, that has the default. */
  owner: string
  name: string
  /** The default as a literal. */
  literal: string
}

const defaults: Default[] = []
visit(parse(printSdl(schema)), {
  InputValueDefinition({ name, defaultValue }, _key, _parent, _path, ancestors) {
    const owners = ancestors.flatMap((node) => ('kind' in node && 'name' in node && node.name ? [node] : []))
    if (!defaultValue || owners.some(({ kind }) => kind === Kind.DIRECTIVE_DEFINITION)) return
    const owner = owners.map((node) => node.name?.value).join('.')
    defaults.push({ owner, name: name.value, literal: print(defaultValue) })
  },
})

/** Writes a call of a field; an argument that is empty is left out. */
function call(field: string, ...args: string[]): string {
  const given = args.filter((arg) => arg !== '')
  return given.length > 0 ? `${field}(${given.join(', ')})` : field
}

const page = '{ totalCount edges { cursor } }'
const created = '{ __typename ... on InvalidInputError { message } ... on NotFoundError { message } }'

/** The document of a request with the argument or field of an owner; the answers must not name new rows. */
const documents: Record<string, (given: string) => string> = {
  'Query.paymentStats': (given) =>
    `{ ${call('paymentStats', 'from: "2026-01-01"', 'to: "2026-02-01"', given)} {
      buckets { start groups { count } } } }`,
  'Query.verifyAuditLog': (given) => `{ ${call('verifyAuditLog', given)} { upTo isComplete } }`,
  'Batch.recipients': (given) => `{ batch(id: ${ids['batch']}) { ${call('recipients', given)} ${page} } }`,
  'PaymentLink.payments': (given) =>
    `{ paymentLink(id: ${ids['link']}) { ${call('payments', given)} ${page} } }`,
  'Webhook.deliveries': (given) =>
    `{ webhook(id: ${ids['webhook']}) { ${call('deliveries', given)} ${page} } }`,
  'Statement.lines': (given) =>
    `{ statement(from: "2026-01-01", to: "2026-02-01") { ${call('lines', given)} ${page} } }`,
  'Mutation.createBatch': (given) =>
    `mutation { ${call('createBatch', 'input: { title: "Primes" }', given)} {
      ... on BatchPayload { batch { status title } dryRun { recipientCount } } } }`,
  'Mutation.processBatch': (given) =>
    `mutation { ${call('processBatch', 'id: "999999"', given)} ${created} }`,
  'Mutation.rotateWebhookSecret': (given) =>
    `mutation { ${call('rotateWebhookSecret', `id: ${ids['webhook']}`, given)} { __typename } }`,
  BeneficiaryFilter: (given) => `{ beneficiaries(filter: { ${given} }) ${page} }`,
  PaymentLinkFilter: (given) => `{ paymentLinks(filter: { ${given} }) ${page} }`,
  AuthenticateInput: (given) =>
    `mutation { authenticate(input: { apiKey: "${shop.apiKey}", apiSecret: "${shop.apiSecret}", ${given} }) {
      ... on AccessToken { scopes expiresIn } } }`,
  CreateBeneficiaryInput: (given) =>
    `mutation { createBeneficiary(
      input: { name: "A", account: "70000001", paymentMethod: OperatorA, ${given} }
    ) { ... on Beneficiary { category } } }`,
  InviteMemberInput: (given) =>
    `mutation { inviteMember(input: { name: "A", email: "a${newEmail()}@shop.test", ${given} }) {
      ... on TeamMember { role } } }`,
  CollectPaymentInput: (given) =>
    `mutation { collectPayment(input: {
      amount: 500, customerPhone: "70000001", paymentMethod: OperatorA, ${given} }) {
      ... on PaymentInitiation { amount currency } } }`,
  CreatePaymentLinkInput: (given) =>
    `mutation { createPaymentLink(input: { title: "A", ${given} }) { ... on PaymentLink { currency } } }`,
  CreatePayoutInput: (given) =>
    `mutation { createPayout(input: {
      amount: 1000, destinationPhone: "70000001", paymentMethod: OperatorA, ${given} }) { __typename } }`,
  // Where a cookie is wanted, each of the three refuses it before all else: programs keep no cookies.
  SignInInput: (given) =>
    `mutation { signIn(input: { email: "a${newEmail()}@shop.test", password: "x", ${given} }) {
      ... on Refusal { code message } } }`,
  AcceptInvitationInput: (given) =>
    `mutation { acceptInvitation(input: { token: "x", password: "le soleil de Bamako", ${given} }) {
      ... on Refusal { code message } } }`,
  SandboxSignInInput: (given) =>
    `mutation { sandboxSignIn(input: { token: "x", ${given} }) { ... on Refusal { code message } } }`,
  DepositInput: (given) =>
    `mutation { deposit(input: {
      amount: 1000, customerPhone: "70000001", paymentMethod: OperatorA, ${given} }) { __typename } }`,
}

let emails = 0
const newEmail = () => (emails += 1)

function documentOf({ owner }: Default, given: string): string {
  const own = documents[owner]
  if (own) return own(given)
  const [type, field = ''] = owner.split('.')
  expect(type, `${owner}: write its document above`).toBe('Query')
  return `{ ${call(field, given)} ${page} }`
}

async function ask(query: string, variables: object = {}): Promise<unknown> {
  const { body } = await fixture.graphql(query, variables, shop.token)
  expect(body['errors'], query).toBeUndefined()
  return body['data']
}

describe('the default of', () => {
  test('is stated for the pages, orders, filters, inputs and switches of the schema', () => {
    expect(defaults.length).toBeGreaterThan(40)
  })

  test.each(defaults.map((each) => [`${each.owner} ${each.name}`, each] as const))(
    '%s',
    async (_name, each) => {
      const without = await ask(documentOf(each, ''))
      const { name, literal } = each
      const isNonNull = each.owner === 'Query.paymentStats'
      for (const given of [literal, ...(isNonNull ? [] : ['null'])])
        expect(await ask(documentOf(each, `${name}: ${given}`)), given).toEqual(without)
    },
  )
})

test('the defaults have their values', () => {
  expect([...new Set(defaults.map(({ name, literal }) => `${name} = ${literal}`))].toSorted()).toEqual([
    'activeOnly = false',
    'activeOnly = true',
    'after = 0',
    'by = []',
    'category = CUSTOMER',
    'cookie = false',
    'currency = XOF',
    'dryRun = false',
    'expiresInHours = 24',
    'first = 20',
    'groupBy = DAY',
    'offset = 0',
    'oldEndsNow = false',
    'orderBy = CREATED_AT_DESC',
    'role = VIEWER',
    'scopes = ["pay", "deposit", "balance"]',
  ])
})

test.each(['', 'first: null, offset: null', 'first: 20'])(
  'a page with the arguments "%s" has 20 links, without the closed one',
  async (given) => {
    for (const filter of ['search: "Lien"', 'search: "Lien", activeOnly: null']) {
      const list = call('paymentLinks', `filter: { ${filter} }`, given)
      const shown = (await ask(`{ ${list} ${page} }`)) as { paymentLinks: { edges: unknown[] } }
      expect(shown).toMatchObject({ paymentLinks: { totalCount: 22 } })
      expect(shown.paymentLinks.edges).toHaveLength(20)
    }
  },
)

test('the default of `first` does not count beside `last`', async () => {
  const shown = await ask(`{ paymentLinks(last: 3) { edges { cursor } } }`)
  expect(shown).toMatchObject({ paymentLinks: { edges: [{}, {}, {}] } })
})

test('a field or parameter that REST leaves out, or gives as null, has its default', async () => {
  const { token, apiKey, apiSecret } = shop
  const send = async (method: string, path: string, body?: object, headers = {}) =>
    (await fixture.rest(method, path, { token, body, headers })).body
  for (const none of [{}, { category: null }]) {
    const payee = { name: 'A', account: '70000001', payment_method: 'OperatorA', ...none }
    expect(await send('POST', '/beneficiaries', payee)).toMatchObject({ data: { category: 'customer' } })
  }
  const keys = { 'X-API-Key': apiKey, 'X-API-Secret': apiSecret }
  for (const none of [undefined, {}, { scopes: null, expires_in_hours: null }]) {
    const { data } = await send('POST', '/auth', none, keys)
    expect(data).toMatchObject({ scopes: ['pay', 'deposit', 'balance'], expires_in: 86_400 })
  }
  for (const none of [{}, { role: null }]) {
    const email = `b${newEmail()}@shop.test`
    expect(await send('POST', '/team/invite', { name: 'B', email, ...none })).toMatchObject({ success: true })
    const { data } = await send('GET', '/team')
    expect(data.find((member: { email: string }) => member.email === email)).toMatchObject({ role: 'viewer' })
  }
  expect((await send('GET', '/payment-links?search=Lien')).data).toHaveLength(20)
  const { data: batch } = await send('POST', '/bulk/batches', { title: 'C', currency: null })
  expect(batch).toMatchObject({ status: 'draft' })
  expect(await send('POST', '/payment-links', { title: 'D', currency: null })).toMatchObject({
    data: { currency: 'XOF' },
  })
})

import fc from 'fast-check'
import { getNamedType, isInputObjectType } from 'graphql'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { schema } from '../../../src/resources/schema.ts'
import { type RestAnswer, startTestApp, type TestMerchant } from '../../kit/app.ts'
import { isVerdict, verdict } from '../../kit/extremes/verdicts.ts'
import { customer } from '../../kit/fixture.ts'
import { seed } from '../../kit/seeds.ts'
import { strength } from '../../kit/strength.ts'

// Times at the edges of what can be written, to every field and filter that takes a time, over both doors.
// Each answer is a success or a refusal that names the field, and every list shows the rows afterwards.

const open = { RATE_LIMIT_WRITES: '100000', RATE_LIMIT_READS: '100000', RATE_LIMIT_OBJECTS: '100000000' }
const fixture = await startTestApp(open)
fixture.app.services.requestLimits.takeAccessChange = () => Promise.resolve()
afterAll(() => fixture.close())
let shop: TestMerchant
let link: number
let batch: number
beforeAll(async () => {
  shop = await fixture.merchant()
  link = (await send('POST', '/payment-links', { title: 'Riz' })).body['data'].id
  batch = (await send('POST', '/bulk/batches', { title: 'Mil' })).body['data'].id
})

const zones = ['Z', '+00:00', '-00:00', '+01:00', '-01:00', '+23:59', '-23:59']
const atEdges = fc
  .tuple(
    fc.constantFrom('0000', '0001', '0099', '1582', '1970', '2025', '2027', '9998', '9999'),
    fc.constantFrom('01-01', '02-28', '06-30', '12-31'),
    fc.constantFrom('T00:00:00', 'T23:59:59', 'T23:59:60', 'T24:00:00', 'T12:30', ''),
    fc.constantFrom('', '.9', '.9994', '.9995', '.9999999'),
    fc.constantFrom(...zones),
  )
  .map(([year, day, time, fraction, zone]) => `${year}-${day}${time}${time === '' ? '' : fraction}${zone}`)
const times = [
  '9999-12-31T23:59:59.9999999Z',
  '9999-12-31T23:59:59.9999999+00:00',
  '9999-12-31T23:59:59.999-23:59',
  '9999-12-31',
  '0001-01-01T00:00:00Z',
  '0001-01-01T00:00:00+01:00',
  '0000-01-01',
  ...fc.sample(atEdges, { seed, numRuns: strength(16, 2_000) }),
]

const send = (method: string, path: string, body?: object) =>
  fixture.rest(method, path, { token: shop.token, body })
const run = (document: string, variables: object) => fixture.graphql(document, variables, shop.token)

const byScalar = /must be (an ISO 8601 time|in the years 1 to 9999)/
const verdictOf = (answer: Pick<RestAnswer, 'status' | 'body'>, field: string, at: string) =>
  verdict(answer, { field, byScalar }, at)

/** The requests that write a time, by the input type of GraphQL and the door. */
const refusal = '... on InvalidInputError { code problems { field message } }'
const inputs: Record<string, Record<string, (at: string) => Promise<RestAnswer>>> = {
  'CreatePaymentLinkInput.expiresAt': {
    rest: (at) => send('POST', '/payment-links', { title: 'Riz', expires_at: at }),
    graphql: (at) =>
      run(
        `mutation ($at: DateTime) { made: createPaymentLink(input: { title: "Mil", expiresAt: $at }) {
          ... on PaymentLink { expiresAt } ${refusal} } }`,
        { at },
      ),
  },
  'UpdatePaymentLinkInput.expiresAt': {
    rest: (at) => send('PUT', `/payment-links/${link}`, { expires_at: at }),
    graphql: (at) =>
      run(
        `mutation ($id: ID!, $input: UpdatePaymentLinkInput!) {
          made: updatePaymentLink(id: $id, input: $input) {
          ... on PaymentLink { expiresAt } ${refusal} } }`,
        { id: String(link), input: { expiresAt: at } },
      ),
  },
  'CreatePayoutInput.scheduledAt': {
    rest: (at) =>
      send('POST', '/payouts', {
        amount: 1_000,
        payment_method: 'OperatorA',
        destination_phone: customer('00'),
        scheduled_at: at,
      }),
    graphql: (at) =>
      run(
        `mutation ($at: DateTime) { made: createPayout(input: { amount: 1000, paymentMethod: OperatorA,
          destinationPhone: "${customer('00')}", scheduledAt: $at }) {
          ... on Payout { scheduledAt } ${refusal} } }`,
        { at },
      ),
  },
  'CreateApiKeyInput.expiresAt': {
    graphql: (at) =>
      run(
        `mutation ($at: DateTime) {
          made: createApiKey(input: { name: "Till", scopes: [PAY], expiresAt: $at }) {
          __typename ${refusal} } }`,
        { at },
      ),
  },
}

/** The lists that take times in REST, and their two parameters. */
const created = ['created_from', 'created_to'] as const
const restFilters = [
  ...['transactions', 'payouts', 'payment-links', 'beneficiaries'].map(
    (name) => [`/${name}`, created] as const,
  ),
  ['/exports/transactions.csv', created] as const,
  ['/exports/payouts.csv', created] as const,
  ['/exports/statement.csv', ['from', 'to']] as const,
]
const nodes = '{ totalCount nodes { id } }'
/** The arguments and filters of GraphQL that take times, by the name of their type or field. */
const graphqlFilters: Record<string, string> = {
  ...Object.fromEntries(
    ['transaction', 'payout', 'paymentLink', 'batch:batches', 'beneficiary:beneficiaries'].map((words) => {
      const [one = '', many = `${one}s`] = words.split(':')
      const type = `${one.charAt(0).toUpperCase()}${one.slice(1)}Filter`
      return [type, `${many}(filter: { createdFrom: $from, createdTo: $to }) ${nodes}`]
    }),
  ),
  AuditLogFilter: `auditLog(filter: { from: $from, to: $to }) ${nodes}`,
  statement: 'statement(from: $from, to: $to) { id from to closing { balance } lines { totalCount } }',
  balance: 'balance(at: $from) { balance asOf }',
  paymentStats: 'paymentStats(from: $from) { total { count } }',
}

/** Reads every list and export whole. */
async function readAll(): Promise<void> {
  const lists = ['/payment-links?active_only=false', '/transactions?', '/payouts?', '/beneficiaries?']
  const paths = [...lists.map((path) => `${path}&limit=100`), `/payment-links/${link}`, '/team', '/webhooks']
  for (const path of paths) expect.soft((await send('GET', path)).status, path).toBe(200)
  const exports = ['transactions.csv', 'payouts.csv', `recipients.csv?batch_id=${batch}`]
  for (const name of [...exports, 'statement.csv?from=0001-01-01&to=9999-12-31']) {
    const headers = { Authorization: `Bearer ${shop.token}` }
    const answer = await fetch(`${fixture.url}/merchant/api/exports/${name}`, { headers })
    expect.soft([answer.status, (await answer.text()).length > 0], name).toEqual([200, true])
  }
  const { body } = await run(
    `{ paymentLinks(first: 100, filter: { activeOnly: false }) { totalCount edges { cursor
        node { id expiresAt createdAt updatedAt availability } } }
      payouts(first: 100) { totalCount edges { cursor node { id scheduledAt createdAt settledAt } } }
      apiKeys(first: 100) { nodes { id expiresAt createdAt } }
      auditLog(first: 100) { totalCount edges { cursor node { id at before after } } }
      transactions(first: 100) { nodes { id createdAt } } batches(first: 100) { nodes { id createdAt } }
      beneficiaries(first: 100) { nodes { id createdAt } } }`,
    {},
  )
  expect.soft(body['errors']).toBeUndefined()
}

describe('a time at the edges', () => {
  const takesTime = (fields: Readonly<Record<string, { type: never }>>) =>
    Object.keys(fields).filter((name) => String(getNamedType(fields[name]?.type)) === 'DateTime')

  test('is tried on every input, filter and argument of the schema that takes one', () => {
    const ofTypes = Object.values(schema.getTypeMap()).filter(isInputObjectType)
    const written = ofTypes.filter(({ name }) => !name.endsWith('Filter'))
    const fields = written.flatMap((type) =>
      takesTime(type.getFields() as never).map((field) => `${type.name}.${field}`),
    )
    expect(fields.toSorted()).toEqual(Object.keys(inputs).toSorted())
    const filters = ofTypes.filter(
      (type) => type.name.endsWith('Filter') && takesTime(type.getFields() as never)[0],
    )
    const roots = Object.values(schema.getQueryType()?.getFields() ?? {}).filter(
      ({ args }) => takesTime(Object.fromEntries(args.map((arg) => [arg.name, arg])) as never).length > 0,
    )
    const names = [...filters, ...roots].map(({ name }) => name)
    expect(names.toSorted()).toEqual(Object.keys(graphqlFilters).toSorted())
  })

  test.each(
    Object.entries(inputs).flatMap(([name, doors]) =>
      Object.entries(doors).map(([door, ask]) => [name, door, ask] as const),
    ),
  )('in %s by %s is read back by every list, or refused by name', async (name, door, ask) => {
    const field = name.slice(name.indexOf('.') + 1)
    const named = door === 'rest' ? field.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`) : field
    // The farthest times that payouts and API keys take.
    const now = fixture.app.services.clock.now().getTime()
    const ahead = [365, 3_652].map((days) => new Date(now + days * 86_400_000 - 60_000).toISOString())
    const asked = [...ahead.map((at) => at.replace('Z', '9999Z')), ...times].slice(0, strength(30, 2_000))
    const verdicts: [string, string][] = []
    for (const at of asked) verdicts.push([at, verdictOf(await ask(at), named, at)])
    expect(verdicts.filter(([, given]) => !isVerdict(given))).toEqual([])
    // At least the farthest time that the field takes: a link takes the last one of all.
    const farthest = name.includes('PaymentLink') ? '9999-12-31T23:59:59.9999999Z' : asked[0]
    const taken = verdicts.filter(([, given]) => given === 'taken').map(([at]) => at)
    expect(taken).toContain(farthest)
    await readAll()
  })

  test('as the expiry of a link is cut to milliseconds and stored as it is shown', async () => {
    const { status, body } = await send('POST', '/payment-links', { title: 'Riz', expires_at: times[0] })
    expect([status, body['data'].expires_at]).toEqual([201, '9999-12-31T23:59:59.999Z'])
    const page = await fetch(`${fixture.url}/l/${body['data'].url_slug}`)
    expect(page.status).toBe(200)
    const stored = await fixture.database.owner.query(
      "SELECT FROM payment_link WHERE expires_at = '9999-12-31 23:59:59.999+00' AND id = $1",
      [body['data'].id],
    )
    expect(stored.rowCount).toBe(1)
  })

  test('is refused by the database itself outside of the years 1 to 9999', async () => {
    const { owner } = fixture.database
    for (const at of ['10000-01-01 00:00:00+00', '0001-12-31 23:59:59+00 BC', 'infinity']) {
      await expect(owner.query('UPDATE payment_link SET expires_at = $1', [at])).rejects.toThrow(
        'payment_link_expires_at',
      )
      await expect(owner.query('UPDATE api_key SET expires_at = $1', [at])).rejects.toThrow(
        'api_key_expires_at',
      )
      const payout = owner.query(
        `INSERT INTO payout (merchant_id, payment_method, destination_phone, amount, status, reference,
          scheduled_at, send_at, approval, maker, request_data, created_at)
        VALUES ($1, 'OperatorA', '+22370000001', 1000, 'failed', 'far', $2, $2, 'not_required', 'member:1',
          '{}', now())`,
        [shop.merchantId, at],
      )
      await expect(payout).rejects.toThrow('payout_scheduled_at')
    }
  })

  test.each(restFilters)('in the filter of %s is taken, or refused by name', async (path, names) => {
    const verdicts: string[] = []
    const headers = { Authorization: `Bearer ${shop.token}` }
    for (const at of times) {
      for (const name of names) {
        const start = name === 'to' ? 'from=0001-01-01&' : ''
        const address = `${fixture.url}/merchant/api${path}?${start}${name}=${encodeURIComponent(at)}`
        const answer = await fetch(address, { headers })
        const text = await answer.text()
        const body = answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : {}
        verdicts.push(verdictOf({ status: answer.status, body }, name, at))
      }
    }
    expect(verdicts.filter((given) => !isVerdict(given))).toEqual([])
    expect(verdicts).toContain('taken')
  })

  test.each(Object.entries(graphqlFilters))(
    'in %s of GraphQL is taken, or refused by name',
    async (_name, asked) => {
      const verdicts: string[] = []
      const hasEnd = asked.includes('$to')
      const end = hasEnd ? ', $to: DateTime = "9999-12-31"' : ''
      const fromOnly = `query ($from: DateTime!${end}) { ${asked} }`
      const toOnly = `query ($from: DateTime! = "0001-01-01", $to: DateTime) { ${asked} }`
      for (const at of times) {
        verdicts.push(verdictOf(await run(fromOnly, { from: at }), 'from', at))
        if (hasEnd) verdicts.push(verdictOf(await run(toOnly, { to: at }), 'to', at))
      }
      expect(verdicts.filter((given) => !isVerdict(given))).toEqual([])
      expect(verdicts).toContain('taken')
    },
  )

  test('is never reached by the clock of the sandbox', async () => {
    const { owner } = fixture.database
    const move = async (by: string) => {
      const { body } = await run('mutation ($by: Duration!) { sandboxAdvanceClock(by: $by) }', { by })
      return body
    }
    await move('P1D')
    const toEnd = Date.UTC(9_000, 0) - Date.now()
    await owner.query('UPDATE sandbox_clock SET offset_ms = $1', [toEnd - 200 * 86_400_000])
    expect((await move('P1D')).data.sandboxAdvanceClock).toMatch(/^8999-/)
    expect((await move('P400D')).errors[0].extensions).toMatchObject({
      code: 'INVALID_INPUT',
      problems: [{ field: 'by' }],
    })
    await readAll()
  })
})

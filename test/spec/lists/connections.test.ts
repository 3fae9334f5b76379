import { beforeAll, describe, expect, test } from 'vitest'
import { isObjectType, getNamedType } from 'graphql'
import { schema } from '../../../src/resources/schema.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { openFixture } from '../../kit/fixture.ts'
import { settleMany } from '../../kit/money.ts'
import { payBy } from '../../kit/money-links.ts'

// Every list of the schema: both directions, both cursors, and the exact total.

const fixture = await openFixture()
const { database, owner } = fixture.database
let shop: TestMerchant
let link: number

beforeAll(async () => {
  shop = await fixture.merchant()
  const hook = { url: 'https://93.184.216.34/hook', events: ['payout_completed'] }
  const post = (path: string, body: object) => fixture.rest('POST', path, { token: shop.token, body })
  const made = await post('/webhooks', hook)
  link = (await post('/payment-links', { title: 'Café', amount: 5_000 })).body['data'].id
  for (let nth = 0; nth < 7; nth += 1) {
    const { id } = await payBy(database.pool, link)
    if (nth > 2) await settleMany(database.pool, [{ id, to: 'success' }])
    await post('/beneficiaries', { name: `B${nth}`, account: '+22370000001', payment_method: 'OperatorA' })
  }
  await owner.query(
    `INSERT INTO webhook_delivery (merchant_id, endpoint_id, type, status, created_at, ended_at)
     SELECT merchant_id, id, 'test',
         (ARRAY['dead', 'delivered'])[1 + n % 2]::webhook_delivery_status,
         now(), now() FROM webhook_endpoint, generate_series(1, 7) AS n WHERE id = $1`,
    [made.body['data'].id],
  )
})

beforeAll(() =>
  eventually(async () => {
    const { body } = await fixture.graphql('{ events { totalCount } }', {}, shop.token)
    if (body['data'].events.totalCount !== 15) throw new Error('Not all events are numbered.')
  }),
)

/** Lists that read forwards only. */
const forwardOnly = new Set(['Query.approvalsWaiting', 'Statement.lines'])

const lists = Object.values(schema.getTypeMap()).flatMap((type) =>
  isObjectType(type)
    ? Object.values(type.getFields())
        .filter((field) => getNamedType(field.type).name.endsWith('Connection'))
        .map((field) => [`${type.name}.${field.name}`, field] as const)
    : [],
)

test.each(lists.filter(([name]) => !forwardOnly.has(name)))(
  '%s reads in both directions',
  (_name, { args }) => {
    const page = args.filter(({ name }) => ['first', 'after', 'last', 'before'].includes(name))
    expect(page).toHaveLength(4)
    expect(page.find(({ name }) => name === 'first')?.defaultValue).toBe(20)
  },
)

test('every list counts its entries', () => {
  expect(lists.length).toBeGreaterThan(12)
  for (const [name, { type }] of lists) {
    const connection = getNamedType(type)
    expect.soft(isObjectType(connection) && Object.keys(connection.getFields()), name).toContain('totalCount')
  }
})

describe.each([
  ['events', '', 'sequence', (page: string) => page],
  ['auditLog', '', 'databaseId', (page: string) => page],
  ['auditLog', 'filter: { isPayment: false }', 'databaseId', (page: string) => page],
  ['beneficiaries', '', 'databaseId', (page: string) => page],
  ['payments', '', 'databaseId', (page: string) => `paymentLink(id: ${link}) { ${page} }`],
  ['payments', 'status: PENDING', 'databaseId', (page: string) => `paymentLink(id: ${link}) { ${page} }`],
  ['deliveries', '', 'databaseId', (page: string) => `webhooks { nodes { ${page} } }`],
  ['deliveries', 'status: DEAD', 'databaseId', (page: string) => `webhooks { nodes { ${page} } }`],
])('%s %s', (field, filter, key, within) => {
  const read = async (args: string) => {
    const document = `{ ${within(`${field}(${args} ${filter}) { totalCount nodes { ${key} }
      pageInfo { startCursor endCursor hasNextPage hasPreviousPage } }`)} }`
    const { body } = await fixture.graphql(document, {}, shop.token)
    expect(body['errors']).toBeUndefined()
    const parent = body['data'].paymentLink ?? body['data'].webhooks?.nodes[0] ?? body['data']
    const { nodes, ...page } = parent[field]
    return { ...page, ids: nodes.map((node: Record<string, number>) => node[key]) }
  }

  test('both directions give every entry once, and the total is their number', async () => {
    const all = await read('first: 100')
    expect(all.ids.length).toBeGreaterThan(2)
    expect(all.totalCount).toBe(all.ids.length)
    const forwards: number[] = []
    let page = await read('first: 2')
    for (forwards.push(...page.ids); page.pageInfo.hasNextPage; forwards.push(...page.ids))
      page = await read(`first: 2, after: "${page.pageInfo.endCursor}"`)
    expect(forwards).toEqual(all.ids)
    page = await read('last: 2')
    const backwards = page.ids
    for (; page.pageInfo.hasPreviousPage; backwards.unshift(...page.ids))
      page = await read(`last: 2, before: "${page.pageInfo.startCursor}"`)
    expect(backwards).toEqual(all.ids)
  })

  test('`after` and `before` both apply', async () => {
    const { ids, pageInfo } = await read('first: 100')
    const { startCursor: after, endCursor: before } = pageInfo
    const between = await read(`first: 50, after: "${after}", before: "${before}"`)
    expect(between.ids).toEqual(ids.slice(1, -1))
    expect((await read(`last: 1, after: "${after}", before: "${before}"`)).ids).toEqual(ids.slice(-2, -1))
  })
})

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLimits, startTestApp, type TestMerchant } from '../../kit/app.ts'
import { checkPages, checkRest, reading } from '../../kit/list-walks.ts'
import { inOrder, insertRows, type ListedRow, type NewRow, orders } from '../../kit/listed-rows.ts'
import { randomFrom } from '../../kit/random.ts'
import { seed } from '../../kit/seeds.ts'

// Lists in each order, page by page in each direction, against a model; and the refusals of orders, cursors
// and searches in both doors.

const app = await startTestApp(openLimits)
afterAll(() => app.close())
const { owner } = app.database
const random = randomFrom(seed)

/** Few amounts for many rows, so that most rows have an amount in common with others. */
const newRows: NewRow[] = Array.from({ length: 60 }, (_none, nth) => ({
  title: `Facture ${nth}`,
  phone: '+22370000001',
  code: null,
  beneficiary: null,
  amount: 1_000 + Math.floor(random() * 5) * 1_000,
  state: Math.floor(random() * 3),
  day: nth,
}))

let shop: TestMerchant
const rowsOf = new Map<string, ListedRow[]>()
beforeAll(async () => {
  const other = await app.merchant()
  shop = await app.merchant()
  for (const { merchantId } of [other, shop]) {
    for (const list of ['transactions', 'payouts'] as const)
      rowsOf.set(list, await insertRows(owner, list, merchantId, newRows))
    const { rows } = await owner.query<ListedRow>(
      `INSERT INTO batch (merchant_id, status, total_amount, maker, created_at)
       SELECT $1, 'draft', amount, 'member:1', now()
       FROM unnest($2::bigint[]) WITH ORDINALITY AS r (amount, nth) ORDER BY nth
       RETURNING id, total_amount::int AS amount, status, created_at AS "createdAt"`,
      [merchantId, newRows.map(({ amount }) => amount)],
    )
    rowsOf.set('batches', rows)
  }
})

const amounts = { amountMin: 2_000, amountMax: 4_000 }
const isWithin = ({ amount }: ListedRow) => amount >= 2_000 && amount <= 4_000

describe.each(['transactions', 'payouts', 'batches'] as const)('%s', (list) => {
  describe.each(orders)('in the order %s', (orderBy) => {
    test.each([1, 7, 100])('%i rows a page', async (size) => {
      const all = rowsOf.get(list) ?? []
      expect(all).toHaveLength(newRows.length)
      const status = list === 'batches' ? 'draft' : 'failed'
      const cases = [
        [{}, () => true],
        [amounts, isWithin],
        [{ status: [status.toUpperCase()] }, (row: ListedRow) => row.status === status],
        [
          { ...amounts, status: [status.toUpperCase()] },
          (r: ListedRow) => isWithin(r) && r.status === status,
        ],
      ] as const
      for (const [filter, keeps] of size === 7 ? cases : cases.slice(3)) {
        const found = inOrder(all.filter(keeps), orderBy)
        const asked = { filter, orderBy }
        await checkPages(reading(app, shop, list, asked), found, size, [random(), random()])
        const ids = found.map(({ id }) => id)
        if (list !== 'batches') await checkRest(app, shop, list, asked, ids, size)
      }
    })
  })

  test('without an order, the newest are first', async () => {
    const newest = inOrder(rowsOf.get(list) ?? []).map(({ id }) => id)
    const page = await reading(app, shop, list, { filter: {} })({ first: 100 })
    expect(page.ids).toEqual(newest)
    if (list !== 'batches') await checkRest(app, shop, list, { filter: {} }, newest, 20)
  })
})

/** Reads a refusal of GraphQL. @returns the names of the wrong arguments, and the message */
async function refusalOf(list: string, args: string): Promise<{ fields: string[]; message: string }> {
  const document = `{ ${list}(${args}) { totalCount edges { cursor } } }`
  const { status, body } = await app.graphql(document, {}, shop.token)
  expect(status).toBeLessThan(500)
  const [error] = body['errors'] ?? []
  expect(error?.extensions.code, JSON.stringify(body)).toBe('INVALID_INPUT')
  const problems: { field: string }[] = error.extensions.problems
  return { fields: problems.map(({ field }) => field), message: error.message }
}

const searched = ['transactions', 'payouts', 'paymentLinks'] as const
const tooShort = 'must have at least 3 letters or digits'
const wrongSearches: readonly [search: string, message: string][] = [
  ['a', tooShort],
  ['+2', tooShort],
  ['--', tooShort],
  ['%%%', tooShort],
  ['___', tooShort],
  ['é\u0301\u0301a', tooShort],
  ['  ', tooShort],
  ['', tooShort],
  ['x'.repeat(101), 'must have at most 100 characters'],
  ['abc\ndef', 'must not contain control or hidden characters'],
  ['abc\u0000', 'must not contain control or hidden characters'],
  ['abc\u202edef', 'must not contain control or hidden characters'],
]

describe.each(wrongSearches)('a search for %j', (search, message) => {
  test.each(searched)('%s refuses', async (list) => {
    const refusal = await refusalOf(list, `filter: { search: ${JSON.stringify(search)} }`)
    expect(refusal.fields).toEqual(['search'])
    expect(refusal.message).toContain(message)
    const path = list === 'paymentLinks' ? 'payment-links' : list
    const { status, body } = await restRefusal(`/${path}`, { search })
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain(`search ${message}`)
    if (list === 'paymentLinks') return
    const answer = await restRefusal(`/exports/${list}.csv`, { search })
    expect(answer.status).toBe(400)
    expect(JSON.stringify(answer.body)).toContain(`search ${message}`)
  })
})

const restRefusal = (path: string, query: Record<string, string>) =>
  app.rest('GET', `${path}?${new URLSearchParams(query)}`, { token: shop.token })

test.each(['transactions', 'payouts'])('a search of %s in the order of amounts is refused', async (list) => {
  for (const orderBy of ['AMOUNT_ASC', 'AMOUNT_DESC']) {
    const refusal = await refusalOf(list, `filter: { search: "facture" }, orderBy: ${orderBy}`)
    expect(refusal.fields).toEqual(['orderBy'])
    const query = { search: 'facture', order_by: orderBy.toLowerCase() }
    const { status, body } = await restRefusal(`/${list}`, query)
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain('order_by must be an order of creation')
  }
})

test.each(['transactions', 'payouts'])('an unknown order of %s is refused', async (list) => {
  for (const order of ['', 'amount', 'AMOUNT_DESC', 'amount_desc,id', 'constructor']) {
    const { status, body } = await restRefusal(`/${list}`, { order_by: order })
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain('order_by must be one of created_at_desc, created_at_asc, ')
  }
  const twice = await app.rest('GET', `/${list}?order_by=amount_asc&order_by=amount_desc`, {
    token: shop.token,
  })
  expect(twice.status).toBe(400)
  const { status, body } = await app.graphql(`{ ${list}(orderBy: NAME) { totalCount } }`, {}, shop.token)
  expect(status).toBeLessThan(500)
  expect(body['errors'][0].message).toContain('NAME')
})

const idOrders = ['CREATED_AT_DESC', 'CREATED_AT_ASC']
const amountOrders = ['AMOUNT_DESC', 'AMOUNT_ASC']
const nines = '9'.repeat(19)
test.each([
  ...idOrders.flatMap((order) => ['1000-1', '1000-', nines, '-1', '1.5', 'x', ''].map((at) => [order, at])),
  ...amountOrders.flatMap((order) =>
    ['7', `${nines}-1`, `1-${nines}`, '-1-1', '1-1-1', '1-', 'x', ''].map((at) => [order, at]),
  ),
])('in the order %s, the cursor %j is refused', async (order, cursor) => {
  for (const list of ['transactions', 'payouts', 'batches']) {
    for (const argument of ['after', 'before']) {
      const args = `orderBy: ${order}, ${argument}: ${JSON.stringify(cursor)}`
      const refusal = await refusalOf(list, args)
      expect(refusal.fields, args).toEqual([argument])
    }
  }
})

test('the largest cursors that the form allows are before or after all rows', async () => {
  const large = '9'.repeat(18)
  for (const list of ['transactions', 'payouts', 'batches'] as const) {
    for (const orderBy of orders) {
      const cursor = orderBy.startsWith('AMOUNT') ? `${large}-${large}` : large
      const read = reading(app, shop, list, { filter: {}, orderBy })
      const isDescending = orderBy.endsWith('DESC')
      expect((await read({ after: cursor })).ids).toHaveLength(isDescending ? 20 : 0)
      expect((await read({ before: cursor })).ids).toHaveLength(isDescending ? 0 : 20)
    }
  }
})

test('a token without the scope of a list gets no row and no total of a search', async () => {
  const { body: signedIn } = await app.rest('POST', '/auth', {
    headers: { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret },
    body: { scopes: ['pay'] },
  })
  const { token } = signedIn['data']
  for (const list of ['transactions', 'payouts', 'paymentLinks']) {
    const asked = `{ ${list}(filter: { search: "facture" }) { totalCount nodes { databaseId } } }`
    const { body } = await app.graphql(asked, {}, token)
    expect(body['errors'][0].extensions.code).toBe('FORBIDDEN')
    expect(body['data'] ?? null).toBeNull()
  }
  for (const path of ['transactions', 'payouts', 'payment-links', 'exports/transactions.csv']) {
    const { status } = await app.rest('GET', `/${path}?search=facture`, { token })
    expect(status).toBe(403)
  }
})

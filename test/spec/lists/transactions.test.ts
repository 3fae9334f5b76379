import { beforeAll, describe, expect, test } from 'vitest'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture()
let shop: TestMerchant
const made: { id: number; phone: string; reference: string }[] = []

const list = async (query = '', merchant = shop) =>
  fixture.rest('GET', `/transactions${query}`, { token: merchant.token })
const idsOf = async (query: string) => {
  const { status, body } = await list(query)
  expect(status).toBe(200)
  return body['data'].transactions.map(({ id }: { id: number }) => id)
}

beforeAll(async () => {
  shop = await fixture.merchant()
  for (let i = 0; i < 25; i += 1) {
    const phone = customer('11')
    const operator = i === 3 ? 'OperatorC' : i === 4 ? 'OperatorB' : 'OperatorA'
    const { transaction_id: id, reference } = await fixture.paid(shop, {
      customer_phone: phone,
      payment_method: operator,
      reference: `list/${i} é`,
    })
    made.push({ id: id as number, phone, reference: String(reference) })
  }
  await fixture.rest('GET', '/balance?payment_method=OperatorA', shop)
  await fixture.pay(await fixture.merchant(), { reference: 'list/0 é' })
})

describe('transactions by cursor', () => {
  const pageOf = async (args: string) => {
    const document = `{ transactions(filter: { transactionType: PAY }, ${args}) {
      nodes { databaseId } pageInfo { startCursor endCursor hasNextPage hasPreviousPage } } }`
    const { body } = await fixture.graphql(document, {}, shop.token)
    return body['data'].transactions
  }
  const ids = (page: { nodes: { databaseId: number }[] }) => page.nodes.map(({ databaseId }) => databaseId)

  test('forwards and backwards give every one once, in the order of the list', async () => {
    const forwards: number[] = []
    let page = await pageOf('first: 10')
    for (forwards.push(...ids(page)); page.pageInfo.hasNextPage; forwards.push(...ids(page)))
      page = await pageOf(`first: 10, after: "${page.pageInfo.endCursor}"`)
    expect(forwards).toEqual(made.map(({ id }) => id).toReversed())
    const backwards = ids(page)
    for (; page.pageInfo.hasPreviousPage; backwards.unshift(...ids(page)))
      page = await pageOf(`last: 10, before: "${page.pageInfo.startCursor}"`)
    expect(backwards).toEqual(forwards)
  })

  test('an unknown cursor is refused by name', async () => {
    const cursor = Buffer.from('GPC:S:mine').toString('base64')
    const document = `{ transactions(first: 1, after: "${cursor}") { nodes { id } } }`
    const { body } = await fixture.graphql(document, {}, shop.token)
    expect(body['errors'][0].extensions).toMatchObject({
      code: 'INVALID_INPUT',
      problems: [{ field: 'after' }],
    })
  })
})

describe('GET /transactions', () => {
  test('gives the newest 20 first, with the pagination', async () => {
    const { status, body } = await list('?transaction_type=pay')
    expect(status).toBe(200)
    expect(body['data'].transactions.map(({ id }: { id: number }) => id)).toEqual(
      made
        .map(({ id }) => id)
        .toReversed()
        .slice(0, 20),
    )
    expect(body['data'].pagination).toEqual({ total: 25, limit: 20, offset: 0, has_more: true })
  })

  test('gives the whole record of each', async () => {
    const { body } = await list('?limit=1&offset=1')
    expect(Object.keys(body['data'].transactions[0]).toSorted()).toEqual([
      'amount',
      'created_at',
      'currency',
      'customer_phone',
      'id',
      'payment_method',
      'reference',
      'request_data',
      'response_data',
      'status',
      'transaction_type',
    ])
  })

  test('limit and offset walk through all of them once', async () => {
    const pages = [
      await list('?limit=10'),
      await list('?limit=10&offset=10'),
      await list('?limit=10&offset=20'),
    ]
    const ids = pages.flatMap(({ body }) => body['data'].transactions.map(({ id }: { id: number }) => id))
    expect(ids).toHaveLength(26)
    expect(ids).toEqual(ids.toSorted((a, b) => b - a))
    expect(pages.map(({ body }) => body['data'].pagination)).toEqual([
      { total: 26, limit: 10, offset: 0, has_more: true },
      { total: 26, limit: 10, offset: 10, has_more: true },
      { total: 26, limit: 10, offset: 20, has_more: false },
    ])
  })

  test('a page of 100 is given; beyond the end there is nothing', async () => {
    expect((await list('?limit=100')).body['data'].transactions).toHaveLength(26)
    const { status, body } = await list('?offset=1000')
    expect(status).toBe(200)
    expect(body['data']).toEqual({
      transactions: [],
      pagination: { total: 26, limit: 20, offset: 1000, has_more: false },
    })
  })

  test.each([
    ['limit', '0'],
    ['limit', '101'],
    ['limit', '-1'],
    ['limit', '1.5'],
    ['limit', 'ten'],
    ['limit', ''],
    ['limit', '1e1'],
    ['limit', '99999999999999999999'],
    ['offset', '-1'],
    ['offset', '0.5'],
    ['offset', 'x'],
    ['offset', '99999999999999999999'],
  ])('400 %s=%s names the parameter', async (name, value) => {
    const { status, body } = await list(`?${name}=${value}`)
    expect(status).toBe(400)
    expect(body['errors']).toEqual([{ field: name, message: expect.any(String) }])
    expect(body['message']).toContain(name)
  })

  test('filters by transaction_type', async () => {
    expect(await idsOf('?transaction_type=balance_check')).toHaveLength(1)
    expect(await idsOf('?transaction_type=deposit')).toEqual([])
  })

  test('filters by payment_method', async () => {
    expect(await idsOf('?payment_method=OperatorC')).toEqual([made[3]?.id])
    expect(await idsOf('?payment_method=OperatorD')).toEqual([])
  })

  test('filters by status', async () => {
    expect(await idsOf('?status=success')).toHaveLength(1)
    expect((await list('?status=pending')).body['data'].pagination.total).toBe(25)
  })

  test('filters by reference and by customer_phone in any notation', async () => {
    const [, second] = made
    expect(await idsOf(`?reference=${encodeURIComponent(second?.reference ?? '')}`)).toEqual([second?.id])
    const digits = second?.phone.slice(4)
    for (const phone of [`%2B223${digits}`, `+223${digits}`, digits, `00223${digits}`])
      expect(await idsOf(`?customer_phone=${phone}`)).toEqual([second?.id])
  })

  test('filters by created_from and created_to, both included', async () => {
    const middle = await fixture.record(shop, made[12]?.id)
    const at = encodeURIComponent(middle['created_at'])
    const [from, to] = [
      await idsOf(`?limit=100&created_from=${at}`),
      await idsOf(`?limit=100&created_to=${at}`),
    ]
    expect(from).toContain(made[12]?.id)
    expect(from).toContain(made[24]?.id)
    expect(from).not.toContain(made[0]?.id)
    expect(to).toContain(made[12]?.id)
    expect(to).not.toContain(made[24]?.id)
    expect(await idsOf(`?created_from=${at}&created_to=${at}&reference=list/12%20%C3%A9`)).toEqual([
      made[12]?.id,
    ])
    expect(await idsOf('?created_from=2020-01-01&created_to=2020-12-31T23:59:59%2B01:00')).toEqual([])
  })

  test('filters work together', async () => {
    expect(await idsOf('?payment_method=OperatorC&status=pending&transaction_type=pay')).toEqual([
      made[3]?.id,
    ])
    expect(await idsOf('?payment_method=OperatorC&status=failed')).toEqual([])
  })

  test.each([
    ['transaction_type', 'payout'],
    ['transaction_type', 'PAY'],
    ['payment_method', 'OperatorE'],
    ['status', 'paid'],
    ['created_from', 'yesterday'],
    ['created_to', '2026-01-31T10:00:00'],
    ['created_to', '2026-02-30'],
    ['customer_phone', '12'],
    ['reference', '%00'],
  ])('400 %s=%s names the parameter', async (name, value) => {
    const { status, body } = await list(`?${name}=${value}`)
    expect(status).toBe(400)
    expect(body['errors'].map(({ field }: { field: string }) => field)).toEqual([name])
  })

  test('an unknown parameter is ignored', async () => {
    expect((await list('?colour=red')).body['data'].pagination.total).toBe(26)
  })

  test('another merchant sees none of it', async () => {
    const { body } = await list('', await fixture.merchant())
    expect(body['data']).toEqual({
      transactions: [],
      pagination: { total: 0, limit: 20, offset: 0, has_more: false },
    })
  })
})

describe('GET /transactions/{id}', () => {
  test('200 the stored record', async () => {
    const [first] = made
    const { status, body } = await fixture.rest('GET', `/transactions/${first?.id}`, shop)
    expect(status).toBe(200)
    expect(body['data']).toEqual({
      id: first?.id,
      transaction_type: 'pay',
      payment_method: 'OperatorA',
      customer_phone: first?.phone,
      amount: 5_000,
      currency: 'XOF',
      status: 'pending',
      reference: 'list/0 é',
      request_data: {
        amount: 5_000,
        currency: 'XOF',
        customer_phone: first?.phone,
        payment_method: 'OperatorA',
        reference: 'list/0 é',
      },
      response_data: {
        operator_reference: null,
        state: 'pending',
        settled_amount: null,
        settled_at: null,
        late: false,
      },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
  })

  test("response_data has the operator's last answer", async () => {
    const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('00') })
    const record = await eventually(async () => {
      const now = await fixture.record(shop, id)
      expect(now['status']).toBe('success')
      return now
    })
    expect(record['response_data']).toMatchObject({
      operator_reference: expect.stringMatching(/./),
      state: 'success',
      settled_at: expect.stringMatching(/Z$/),
      late: false,
    })
  })

  test('reads the record and asks no operator', async () => {
    const [first] = made
    const name = await fixture.correlationOf(first?.id)
    const before = (await fixture.seen(name)).length
    for (let i = 0; i < 3; i += 1) await fixture.record(shop, first?.id)
    expect((await fixture.seen(name)).length).toBe(before)
  })

  test('holds no secret of ours or of the operator', async () => {
    const text = JSON.stringify(await fixture.record(shop, made[4]?.id))
    for (const word of ['sandbox-', 'secret', 'Bearer', 'api_key', 'token', shop.apiSecret])
      expect(text.toLowerCase()).not.toContain(word.toLowerCase())
  })

  test('404 an id that does not exist', async () => {
    for (const id of ['999999999', '9007199254740991']) {
      const { status, body } = await fixture.rest('GET', `/transactions/${id}`, shop)
      expect(status).toBe(404)
      expect(body).toMatchObject({ success: false, message: expect.any(String) })
    }
  })

  test('404 the transaction of another merchant, as if it did not exist', async () => {
    const other = await fixture.merchant()
    const foreign = await fixture.rest('GET', `/transactions/${made[0]?.id}`, other)
    const unknownId = await fixture.rest('GET', '/transactions/999999999', other)
    expect(foreign.status).toBe(404)
    expect({ ...foreign.body, request_id: '' }).toEqual({ ...unknownId.body, request_id: '' })
  })

  test.each(['abc', '0', '-1', '1.5', '1e3', '99999999999999999999', '%00', '0x10'])(
    '400 an id that is no whole number: %s',
    async (id) => {
      const { status, body } = await fixture.rest('GET', `/transactions/${id}`, shop)
      expect(status).toBe(400)
      expect(body['errors'][0].field).toBe('id')
    },
  )
})

import { beforeAll, describe, expect, test } from 'vitest'
import { borrow } from '../../kit/client.ts'
import type { RestAnswer, TestMerchant } from '../../kit/app.ts'
import { openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture()
let shop: TestMerchant
beforeAll(async () => {
  shop = await fixture.merchant()
})

const awa = { name: 'Awa Traoré', account: '70 00 00 01', payment_method: 'OperatorA' }
const bank = { name: 'Quincaillerie', account: 'ML13 0012 3456 7890', payment_method: 'BankTransfer' }

const ask = (method: string, path: string, body?: unknown, merchant = shop, headers = {}) =>
  fixture.rest(method, `/beneficiaries${path}`, { token: merchant.token, body, headers })
async function saved(body: object = awa, merchant = shop): Promise<RestAnswer['body']> {
  const answer = await ask('POST', '', body, merchant)
  expect(answer.status).toBe(201)
  return answer.body['data']
}
const read = async (id: number) => (await ask('GET', `/${id}`)).body['data']
const fieldsOf = ({ status, body }: RestAnswer) => [
  status,
  ...(body['errors'] ?? []).map(({ field }: { field: string }) => field).toSorted(),
]

describe('POST /beneficiaries', () => {
  test('201 with the record; the number as E.164, the category customer', async () => {
    const { status, body } = await ask('POST', '', awa)
    expect(status).toBe(201)
    expect(body).toEqual({
      success: true,
      request_id: expect.any(String),
      data: {
        id: expect.any(Number),
        name: 'Awa Traoré',
        account: '+22370000001',
        payment_method: 'OperatorA',
        category: 'customer',
        is_active: true,
        created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      },
    })
  })

  test('an account at a bank is kept as it is written', async () => {
    expect(await saved({ ...bank, category: 'supplier' })).toMatchObject({
      account: 'ML13 0012 3456 7890',
      payment_method: 'BankTransfer',
      category: 'supplier',
    })
  })

  test.each<[string, unknown, string[]]>([
    ['nothing', {}, ['account', 'name', 'payment_method']],
    ['an account of another country', { ...awa, account: '+33612345678' }, ['account']],
    ['a bank account for an operator', { ...bank, payment_method: 'OperatorB' }, ['account']],
    ['a bank account too short', { ...bank, account: ' 1234 ' }, ['account']],
    ['one too long', { ...bank, account: 'x'.repeat(35) }, ['account']],
    ['no name, and an account that does not fit', { ...awa, name: ' ', account: '12' }, ['account', 'name']],
    ['a name too long', { ...awa, name: 'x'.repeat(201) }, ['name']],
    ['a hidden character', { ...awa, name: 'A\u0000' }, ['name']],
    ['another method', { ...awa, payment_method: 'OperatorE' }, ['payment_method']],
    ['another category', { ...awa, category: 'friend' }, ['category']],
    ['numbers in place of text', { ...awa, name: 7, account: 70_000_001 }, ['account', 'name']],
  ])('400 for %s, with every field, and no row is kept', async (_what, body, fields) => {
    const other = await fixture.merchant()
    expect(fieldsOf(await ask('POST', '', body, other))).toEqual([400, ...fields])
    expect((await ask('GET', '', undefined, other)).headers.get('x-total-count')).toBe('0')
  })

  test('two with one account are two; under one Idempotency-Key they are one', async () => {
    const merchant = await fixture.merchant()
    const [first, second] = [await saved(awa, merchant), await saved(awa, merchant)]
    expect(second.id).not.toBe(first.id)
    const headers = { 'Idempotency-Key': 'awa' }
    const made = await ask('POST', '', awa, merchant, headers)
    // Its process died before it could keep the answer.
    await fixture.database.owner.query(
      `UPDATE idempotency_key SET answer = NULL, locked_until = NULL WHERE merchant_id = $1`,
      [merchant.merchantId],
    )
    const again = await ask('POST', '', awa, merchant, headers)
    expect(again.body['data']).toEqual(made.body['data'])
    expect((await ask('GET', '', undefined, merchant)).headers.get('x-total-count')).toBe('3')
  })
})

describe('GET /beneficiaries', () => {
  let many: TestMerchant
  let ids: number[]
  beforeAll(async () => {
    many = await fixture.merchant()
    ids = []
    for (let n = 0; n < 5; n += 1) {
      const method = n === 1 ? bank : awa
      const { id } = await saved({ ...method, category: n < 3 ? 'supplier' : 'employee' }, many)
      ids.unshift(id)
    }
    await ask('PUT', `/${ids[4]}`, { is_active: false }, many)
  })
  const list = async (query: string) => {
    const answer = await ask('GET', query, undefined, many)
    expect(answer.status).toBe(200)
    return answer
  }
  const idsOf = async (query: string) =>
    (await list(query)).body['data'].map(({ id }: { id: number }) => ids.indexOf(id))

  test('a bare array, newest first, inactive ones too, with its length in a header', async () => {
    const { body, headers } = await list('')
    expect(body['data'].map(({ id }: { id: number }) => id)).toEqual(ids)
    expect(headers.get('x-total-count')).toBe('5')
  })

  test.each<[string, number[]]>([
    ['?category=employee', [0, 1]],
    ['?payment_method=BankTransfer', [3]],
    ['?active_only=true', [0, 1, 2, 3]],
    ['?active_only=false', [0, 1, 2, 3, 4]],
    ['?active_only=true&category=supplier&payment_method=OperatorA', [2]],
    ['?limit=2&offset=2', [2, 3]],
    ['?limit=100&offset=100', []],
  ])('%s filters the list', async (query, shown) => {
    expect(await idsOf(query)).toEqual(shown)
  })

  test('links lead through all pages, with the filter', async () => {
    const seen: number[] = []
    let next: string | undefined = '?active_only=true&limit=3'
    while (next !== undefined) {
      const { body, headers } = await list(next)
      seen.push(...body['data'].map(({ id }: { id: number }) => id))
      expect(headers.get('x-total-count')).toBe('4')
      next = /\/beneficiaries(\?[^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
    }
    expect(seen).toEqual(ids.slice(0, 4))
  })

  test.each(['limit=0', 'limit=101', 'offset=-1', 'category=x', 'payment_method=x', 'active_only=1'])(
    '400 for %s',
    async (query) => {
      const [field = ''] = query.split('=')
      expect(fieldsOf(await ask('GET', `?${query}`))).toEqual([400, field])
    },
  )

  test('the connection goes both ways', async () => {
    const page = async (args: string) => {
      const document = `{ beneficiaries(${args}) { totalCount nodes { databaseId }
        pageInfo { startCursor endCursor hasNextPage hasPreviousPage } } }`
      const { body } = await fixture.graphql(document, {}, many.token)
      const { nodes, ...rest } = body['data'].beneficiaries
      return { ids: nodes.map(({ databaseId }: { databaseId: number }) => databaseId), ...rest }
    }
    const first = await page('first: 2')
    const second = await page(`first: 2, after: "${first.pageInfo.endCursor}"`)
    expect([first.totalCount, ...first.ids, ...second.ids]).toEqual([5, ...ids.slice(0, 4)])
    expect(second.pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: true })
    const back = await page(`last: 2, before: "${second.pageInfo.startCursor}"`)
    expect(back.ids).toEqual(first.ids)
  })
})

describe('GET /beneficiaries/{id}', () => {
  test("the record; 404 for another merchant's, an unknown id, and an id beyond all ids", async () => {
    const made = await saved()
    expect(await read(made.id)).toEqual(made)
    const foreign = await saved(awa, await fixture.merchant())
    const unknownIds = [foreign.id, 999_999, 2_147_483_648, Number.MAX_SAFE_INTEGER]
    for (const id of unknownIds) expect((await ask('GET', `/${id}`)).status).toBe(404)
    expect((await ask('GET', '/x')).status).toBe(400)
  })

  test('in GraphQL by either id; null for the id of another type', async () => {
    const { id } = await saved()
    const document = 'query ($id: ID!) { beneficiary(id: $id) { id databaseId } }'
    const find = async (name: string) =>
      (await fixture.graphql(document, { id: name }, shop.token)).body['data'].beneficiary
    const found = await find(String(id))
    expect(found.databaseId).toBe(id)
    expect(await find(found.id)).toEqual(found)
    expect(await find(btoa(`Transaction:${id}`))).toBeNull()
    const { body } = await fixture.graphql(
      'query ($id: ID!) { node(id: $id) { ... on Beneficiary { databaseId } } }',
      { id: found.id },
      shop.token,
    )
    expect(body['data'].node).toEqual({ databaseId: id })
  })
})

describe('PUT /beneficiaries/{id}', () => {
  test('changes the given fields, answers the envelope only', async () => {
    const made = await saved()
    const { status, body } = await ask('PUT', `/${made.id}`, { name: 'Awa T.', is_active: false })
    expect([status, body]).toEqual([200, { success: true, request_id: expect.any(String) }])
    expect(await read(made.id)).toEqual({ ...made, name: 'Awa T.', is_active: false })
    await ask('PUT', `/${made.id}`, { is_active: true, category: 'partner', account: '0022376000002' })
    const after = { ...made, name: 'Awa T.', category: 'partner', account: '+22376000002' }
    expect(await read(made.id)).toEqual(after)
    expect((await ask('PUT', `/${made.id}`, {})).status).toBe(200)
    expect(await read(made.id)).toEqual(after)
  })

  test('account and method are checked in their new combination', async () => {
    const made = await saved()
    const refused: [object, string][] = [
      [{ account: 'ML13 0012 3456' }, 'account'],
      [{ payment_method: 'BankTransfer', account: '123' }, 'account'],
      [{ is_active: 'true' }, 'is_active'],
      [{ name: '' }, 'name'],
    ]
    for (const [body, field] of refused)
      expect(fieldsOf(await ask('PUT', `/${made.id}`, body))).toEqual([400, field])
    expect(await read(made.id)).toEqual(made)
    await ask('PUT', `/${made.id}`, { payment_method: 'BankTransfer', account: 'ML13 0012' })
    expect(fieldsOf(await ask('PUT', `/${made.id}`, { payment_method: 'OperatorC' }))).toEqual([
      400,
      'account',
    ])
    await ask('PUT', `/${made.id}`, { payment_method: 'OperatorC', account: '70000003' })
    expect(await read(made.id)).toMatchObject({ payment_method: 'OperatorC', account: '+22370000003' })
  })

  test('a concurrent change is checked together with this one', async () => {
    const { id } = await saved({ ...bank, account: '+22370000001' })
    const { owner } = fixture.database
    const between = await borrow(owner)
    await between.query('BEGIN')
    await between.query('SELECT FROM beneficiary WHERE id = $1 FOR UPDATE', [id])
    const change = ask('PUT', `/${id}`, { payment_method: 'OperatorA' })
    await fixture.database.untilWaiting()
    await between.query(`UPDATE beneficiary SET account = 'ML13 0012' WHERE id = $1`, [id])
    await between.query('COMMIT')
    between.release()
    expect(fieldsOf(await change)).toEqual([400, 'account'])
    expect(await read(id)).toMatchObject({ payment_method: 'BankTransfer', account: 'ML13 0012' })
  })

  test("404 for another merchant's, with any body; nothing changes", async () => {
    const other = await fixture.merchant()
    const foreign = await saved(awa, other)
    const answers = [
      await ask('PUT', `/${foreign.id}`, { name: 'Mine' }),
      await ask('PUT', '/999999', { name: 'Mine' }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([404, 404])
    expect((await ask('GET', `/${foreign.id}`, undefined, other)).body['data']).toEqual(foreign)
  })

  test('there is no DELETE', async () => {
    const { id } = await saved()
    const { status, headers } = await ask('DELETE', `/${id}`)
    expect([status, headers.get('allow')]).toEqual([405, 'GET, PUT, HEAD'])
  })
})

test('GraphQL saves and changes, and refuses in types', async () => {
  const create = `mutation ($input: CreateBeneficiaryInput!) { createBeneficiary(input: $input) { __typename
    ... on Beneficiary { databaseId name account category isActive }
    ... on InvalidInputError { problems { field } } } }`
  const input = { name: 'Moussa', account: '70000009', paymentMethod: 'OperatorD', category: 'EMPLOYEE' }
  const made = await fixture.graphql(create, { input }, shop.token)
  const { databaseId, ...record } = made.body['data'].createBeneficiary
  expect(record).toEqual({
    __typename: 'Beneficiary',
    name: 'Moussa',
    account: '+22370000009',
    category: 'EMPLOYEE',
    isActive: true,
  })
  const refused = await fixture.graphql(create, { input: { ...input, account: 'x' } }, shop.token)
  expect(refused.body['data'].createBeneficiary).toEqual({
    __typename: 'InvalidInputError',
    problems: [{ field: 'account' }],
  })
  const update = `mutation ($id: ID!) { updateBeneficiary(id: $id, input: { isActive: false }) { __typename
    ... on Beneficiary { isActive name } ... on NotFoundError { code } } }`
  const changed = await fixture.graphql(update, { id: databaseId }, shop.token)
  expect(changed.body['data'].updateBeneficiary).toMatchObject({ isActive: false, name: 'Moussa' })
  const missing = await fixture.graphql(update, { id: 'nobody' }, shop.token)
  expect(missing.body['data'].updateBeneficiary).toEqual({ __typename: 'NotFoundError', code: 'NOT_FOUND' })
})

test('without the scope: 403 that names it', async () => {
  const { body: signedIn } = await fixture.rest('POST', '/auth', {
    headers: { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret },
    body: { scopes: ['payout', 'balance'] },
  })
  const { status, body } = await fixture.rest('GET', '/beneficiaries', { token: signedIn['data'].token })
  expect([status, body['required_scopes']]).toEqual([403, ['beneficiaries']])
})

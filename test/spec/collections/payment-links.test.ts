import { beforeAll, describe, expect, test } from 'vitest'
import { scopes } from '../../../src/identity/callers/scopes.ts'
import type { RestAnswer, TestMerchant } from '../../kit/app.ts'
import { hour, openFixture } from '../../kit/fixture.ts'

// Payment links as the merchant sees them.

const fixture = await openFixture()
let shop: TestMerchant
/** A merchant without a link. */
let none: TestMerchant
beforeAll(async () => {
  shop = await fixture.merchant()
  none = await fixture.merchant()
})

const ahead = (ms: number) => new Date(Date.now() + ms).toISOString()
const ask = (method: string, path: string, body?: unknown, merchant = shop, headers = {}) =>
  fixture.rest(method, `/payment-links${path}`, { token: merchant.token, body, headers })
async function linked(body: object = {}, merchant = shop): Promise<RestAnswer['body']> {
  const answer = await ask('POST', '', { title: 'Café', ...body }, merchant)
  expect([answer.status, answer.body['errors']]).toEqual([201, undefined])
  return answer.body['data']
}
const read = async (id: number) => (await ask('GET', `/${id}`)).body['data']
const fieldsOf = ({ status, body }: RestAnswer) => [
  status,
  ...(body['errors'] ?? []).map(({ field }: { field: string }) => field).toSorted(),
]
const longest = `a${'-0'.repeat(31)}z`

describe('POST /payment-links', () => {
  test('201 with all fields, its address, and its Location', async () => {
    const expiry = ahead(hour)
    const { status, body, headers } = await ask('POST', '', {
      title: 'Sac de riz',
      description: '25 kg',
      amount: 15_000,
      currency: 'XOF',
      url_slug: 'sac-de-riz',
      usage_limit: 3,
      expires_at: expiry,
    })
    expect(status).toBe(201)
    expect(body).toEqual({
      success: true,
      request_id: expect.any(String),
      data: {
        id: expect.any(Number),
        title: 'Sac de riz',
        description: '25 kg',
        amount: 15_000,
        currency: 'XOF',
        url_slug: 'sac-de-riz',
        url: `${fixture.url}/l/sac-de-riz`,
        usage_limit: 3,
        usage_count: 0,
        availability: 'open',
        is_active: true,
        expires_at: expiry,
        created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      },
    })
    expect(headers.get('location')).toMatch(new RegExp(`/payment-links/${body['data'].id}$`))
    expect(await read(body['data'].id)).toEqual(body['data'])
  })

  test('a title is enough: the payer types the amount, and a slug of 10 characters is made', async () => {
    const made = await linked()
    expect(made).toMatchObject({
      description: null,
      amount: null,
      usage_limit: null,
      expires_at: null,
      url_slug: expect.stringMatching(/^[a-z0-9]{10}$/),
    })
    expect((await linked()).url_slug).not.toBe(made.url_slug)
  })

  test.each<[string, object]>([
    ['the least amount', { amount: 100 }],
    ['the most', { amount: 1_000_000 }],
    ['one use', { usage_limit: 1 }],
    ['the shortest slug', { url_slug: 'a-1' }],
    ['the longest', { url_slug: longest }],
    ['a title of 200 letters', { title: 'é'.repeat(200) }],
    ['a field of its own', { colour: 'red' }],
  ])('201 with %s', async (_what, body) => {
    const { colour: _unknown, ...kept } = body as Record<string, unknown>
    expect(await linked(body)).toMatchObject(kept)
  })

  test.each<[string, unknown, string[]]>([
    ['nothing', {}, ['title']],
    ['an empty title', { title: ' ' }, ['title']],
    ['a title too long', { title: 'x'.repeat(201) }, ['title']],
    ['a title that is no text', { title: 7 }, ['title']],
    ['a description too long', { title: 'A', description: 'x'.repeat(1_001) }, ['description']],
    ['less than the minimum', { title: 'A', amount: 99 }, ['amount']],
    ['more than the maximum', { title: 'A', amount: 1_000_001 }, ['amount']],
    ['a part of a franc', { title: 'A', amount: 100.5 }, ['amount']],
    ['an amount as text', { title: 'A', amount: '5000' }, ['amount']],
    ['another currency', { title: 'A', currency: 'EUR' }, ['currency']],
    ['zero uses', { title: 'A', usage_limit: 0 }, ['usage_limit']],
    ['uses as text', { title: 'A', usage_limit: '3' }, ['usage_limit']],
    ['half a use', { title: 'A', usage_limit: 1.5 }, ['usage_limit']],
    ['an expiry in the past', { title: 'A', expires_at: ahead(-1_000) }, ['expires_at']],
    ['an expiry that is no time', { title: 'A', expires_at: 'demain' }, ['expires_at']],
    [
      'every field wrong',
      { title: '', amount: 1, url_slug: 'A', usage_limit: -1 },
      ['amount', 'title', 'url_slug', 'usage_limit'],
    ],
  ])('400 for %s, with every field, and no row is kept', async (_what, body, fields) => {
    expect(fieldsOf(await ask('POST', '', body, none))).toEqual([400, ...fields])
    expect((await ask('GET', '', undefined, none)).headers.get('x-total-count')).toBe('0')
  })

  test.each([
    'ab',
    `${longest}0`,
    'Riz',
    'riz_1',
    '-riz',
    'riz-',
    'riz--1',
    'café',
    'a b c',
    '',
    'admin',
    'login',
  ])('400 for the slug %j', async (slug) => {
    expect(fieldsOf(await ask('POST', '', { title: 'A', url_slug: slug }))).toEqual([400, 'url_slug'])
  })

  test('409 for a slug that any merchant has already, which changes nothing', async () => {
    const made = await linked({ url_slug: 'taken-by-one' })
    const other = await fixture.merchant()
    for (const merchant of [shop, other]) {
      const { status, body } = await ask('POST', '', { title: 'B', url_slug: 'taken-by-one' }, merchant)
      expect([status, body['success'], typeof body['message']]).toEqual([409, false, 'string'])
      expect(JSON.stringify(body)).not.toContain('Café')
    }
    expect(await read(made.id)).toEqual(made)
    expect((await ask('GET', '', undefined, other)).headers.get('x-total-count')).toBe('0')
  })

  test('of many requests for one slug at a time, one gets it', async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => ask('POST', '', { title: 'C', url_slug: 'wanted-by-many' })),
    )
    expect(answers.map(({ status }) => String(status)).toSorted()).toEqual(['201', ...Array(5).fill('409')])
  })

  test('under one Idempotency-Key one link is made, also where the first answer was lost', async () => {
    const merchant = await fixture.merchant()
    for (const body of [{ title: 'D' }, { title: 'D', url_slug: 'made-once' }]) {
      const headers = { 'Idempotency-Key': JSON.stringify(body.url_slug ?? 'none') }
      const made = await ask('POST', '', body, merchant, headers)
      expect(made.status).toBe(201)
      const forget = 'UPDATE idempotency_key SET answer = NULL, locked_until = NULL WHERE merchant_id = $1'
      await fixture.database.owner.query(forget, [merchant.merchantId])
      expect((await ask('POST', '', body, merchant, headers)).body['data']).toEqual(made.body['data'])
    }
    expect((await ask('GET', '', undefined, merchant)).headers.get('x-total-count')).toBe('2')
  })
})

describe('GET /payment-links', () => {
  let many: TestMerchant
  let ids: number[]
  beforeAll(async () => {
    many = await fixture.merchant()
    ids = []
    for (let n = 0; n < 5; n += 1) ids.unshift((await linked({}, many)).id)
    await ask('PUT', `/${ids[1]}`, { is_active: false }, many)
  })

  test.each<[string, number[], number]>([
    ['', [0, 2, 3, 4], 4],
    ['?active_only=true', [0, 2, 3, 4], 4],
    ['?active_only=false', [0, 1, 2, 3, 4], 5],
    ['?limit=2&offset=1', [2, 3], 4],
    ['?limit=100&offset=100', [], 4],
  ])('%j filters the list, newest first, and its total', async (query, shown, total) => {
    const { status, body, headers } = await ask('GET', query, undefined, many)
    expect(status).toBe(200)
    expect(body['data'].map(({ id }: { id: number }) => ids.indexOf(id))).toEqual(shown)
    expect(headers.get('x-total-count')).toBe(String(total))
    expect(headers.get('link')).toContain('rel="first"')
  })

  test('each link of the list equals the one read by its id', async () => {
    const { body } = await ask('GET', '?active_only=false&limit=1&offset=1', undefined, many)
    expect(body['data']).toEqual([(await ask('GET', `/${ids[1]}`, undefined, many)).body['data']])
    expect(body['data'][0]).toMatchObject({ is_active: false, availability: 'inactive' })
  })

  test.each(['limit=0', 'limit=101', 'offset=-1', 'active_only=1'])('400 for %s', async (query) => {
    expect(fieldsOf(await ask('GET', `?${query}`))).toEqual([400, query.split('=')[0]])
  })
})

describe('GET /payment-links/{id}', () => {
  test("404 for another merchant's, for an unknown id, and for an id beyond all ids", async () => {
    const foreign = await linked({}, await fixture.merchant())
    const unknownIds = [foreign.id, 999_999, 2_147_483_648, Number.MAX_SAFE_INTEGER]
    for (const id of unknownIds) expect((await ask('GET', `/${id}`)).status).toBe(404)
    expect((await ask('GET', '/x')).status).toBe(400)
  })

  test('a link that has run out says so', async () => {
    const { id } = await linked({ expires_at: ahead(hour) })
    await fixture.advance(hour)
    expect(await read(id)).toMatchObject({ availability: 'expired', is_active: true })
    await ask('PUT', `/${id}`, { expires_at: ahead(10 * hour) })
    expect(await read(id)).toMatchObject({ availability: 'open' })
  })
})

describe('PUT /payment-links/{id}', () => {
  test('changes the given fields, answers the envelope only; null clears all but the title', async () => {
    const expiry = ahead(10 * hour)
    const made = await linked({ description: 'x', amount: 500, usage_limit: 2, expires_at: expiry })
    const { status, body } = await ask('PUT', `/${made.id}`, { title: 'Thé', amount: 700 })
    expect([status, body]).toEqual([200, { success: true, request_id: expect.any(String) }])
    expect(await read(made.id)).toEqual({ ...made, title: 'Thé', amount: 700 })
    expect((await ask('PUT', `/${made.id}`, {})).status).toBe(200)
    expect(await read(made.id)).toEqual({ ...made, title: 'Thé', amount: 700 })
    const cleared = { description: null, amount: null, usage_limit: null, expires_at: null }
    expect((await ask('PUT', `/${made.id}`, cleared)).status).toBe(200)
    expect(await read(made.id)).toEqual({ ...made, title: 'Thé', ...cleared })
    await ask('PUT', `/${made.id}`, { is_active: false, url_slug: 'another' })
    const closed = { is_active: false, availability: 'inactive' }
    expect(await read(made.id)).toEqual({ ...made, title: 'Thé', ...cleared, ...closed })
  })

  test.each<[object, string]>([
    [{ title: '' }, 'title'],
    [{ amount: 99 }, 'amount'],
    [{ amount: 1_000_001 }, 'amount'],
    [{ currency: 'EUR' }, 'currency'],
    [{ usage_limit: 0 }, 'usage_limit'],
    [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [{ is_active: 'false' }, 'is_active'],
  ])('400 for %j, and nothing changes', async (body, field) => {
    const made = await linked()
    expect(fieldsOf(await ask('PUT', `/${made.id}`, { description: 'new', ...body }))).toEqual([400, field])
    expect(await read(made.id)).toEqual(made)
  })

  test("404 for another merchant's, and for an unknown id", async () => {
    const other = await fixture.merchant()
    const foreign = await linked({}, other)
    for (const id of [foreign.id, 999_999])
      expect((await ask('PUT', `/${id}`, { title: 'Mine' })).status).toBe(404)
    expect((await ask('GET', `/${foreign.id}`, undefined, other)).body['data']).toEqual(foreign)
  })

  test('there is no DELETE', async () => {
    const { id } = await linked()
    expect((await ask('DELETE', `/${id}`)).status).toBe(405)
  })
})

test('403 without the scope payment_links, and 401 without a token', async () => {
  const { id } = await linked()
  const asked: [string, string, object?][] = [
    ['POST', '', { title: 'A' }],
    ['GET', ''],
    ['GET', `/${id}`],
    ['PUT', `/${id}`, { title: 'A' }],
  ]
  const { body } = await fixture.rest('POST', '/auth', {
    headers: { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret },
    body: { scopes: scopes.filter((scope) => scope !== 'payment_links') },
  })
  for (const [method, path, sent] of asked) {
    const options = { ...(sent && { body: sent }) }
    const at = `/payment-links${path}`
    expect((await fixture.rest(method, at, { ...options, token: body['data'].token })).status).toBe(403)
    expect((await fixture.rest(method, at, options)).status).toBe(401)
  }
})

test('GraphQL makes, changes and lists, and refuses in types', async () => {
  const merchant = await fixture.merchant()
  const run = async (document: string, variables: object = {}) =>
    (await fixture.graphql(document, variables, merchant.token)).body['data']
  const create = `mutation ($input: CreatePaymentLinkInput!) { made: createPaymentLink(input: $input) {
    __typename ... on PaymentLink { id databaseId url availability } ... on Refusal { code } } }`
  const { made } = await run(create, { input: { title: 'A', urlSlug: 'by-graphql', amount: 500 } })
  expect(made).toMatchObject({ url: `${fixture.url}/l/by-graphql`, availability: 'OPEN' })
  for (const [input, type] of [
    [{ title: 'B', urlSlug: 'by-graphql' }, 'SlugTakenError'],
    [{ title: 'B', amount: 99 }, 'InvalidInputError'],
  ] as const)
    expect((await run(create, { input })).made).toEqual({ __typename: type, code: expect.any(String) })
  const change = `mutation ($id: ID!, $input: UpdatePaymentLinkInput!) {
    changed: updatePaymentLink(id: $id, input: $input) {
      __typename ... on PaymentLink { title amount isActive } ... on Refusal { code } } }`
  expect((await run(change, { id: made.id, input: { amount: null, isActive: false } })).changed).toEqual({
    __typename: 'PaymentLink',
    title: 'A',
    amount: null,
    isActive: false,
  })
  expect((await run(change, { id: '999999', input: {} })).changed.code).toBe('NOT_FOUND')
  const listed = await run(`{ some: paymentLinks { totalCount }
    all: paymentLinks(first: 1, filter: { activeOnly: false }) { totalCount nodes { databaseId } } }`)
  expect(listed).toEqual({
    some: { totalCount: 0 },
    all: { totalCount: 1, nodes: [{ databaseId: made.databaseId }] },
  })
  const node = await run('query ($id: ID!) { node(id: $id) { ... on PaymentLink { title } } }', {
    id: made.id,
  })
  expect(node).toEqual({ node: { title: 'A' } })
})

describe('the QR code of a link', () => {
  const fetched = (path: string, merchant = shop) =>
    fetch(`${fixture.url}/merchant/api/payment-links${path}`, {
      headers: { Authorization: `Bearer ${merchant.token}` },
    })

  test('is an image to print and one to draw, and GraphQL gives the same', async () => {
    const { id } = await linked()
    const [svg, png] = await Promise.all([fetched(`/${id}/qr.svg`), fetched(`/${id}/qr.png`)])
    expect([svg.status, svg.headers.get('Content-Type')]).toEqual([200, 'image/svg+xml'])
    expect([png.status, png.headers.get('Content-Type')]).toEqual([200, 'image/png'])
    const document = 'query ($id: ID!) { paymentLink(id: $id) { qr { svg png } } }'
    const { body } = await fixture.graphql(document, { id }, shop.token)
    expect(body['data'].paymentLink.qr).toEqual({
      svg: await svg.text(),
      png: Buffer.from(await png.arrayBuffer()).toString('base64'),
    })
  })

  test('404 for another merchant, for an unknown link and for an invalid id', async () => {
    const { id } = await linked()
    const answers = [fetched(`/${id}/qr.svg`, none), fetched('/999999/qr.png'), fetched('/x/qr.png')]
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([404, 404, 404])
  })
})

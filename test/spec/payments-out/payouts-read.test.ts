import { createClient } from 'graphql-sse'
import { beforeAll, describe, expect, test } from 'vitest'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { beginPayouts } from '../../kit/money-out.ts'
import { day, fieldsOf, payoutsOn } from '../../kit/payouts.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture()
const { shop, payOut, ahead, record, cancel } = payoutsOn(fixture)
const { pool } = fixture.database.database

let merchant: TestMerchant
let beneficiary: number
const made: { id: number; reference: string }[] = []

const list = (query = '', token = merchant.token) => fixture.rest('GET', `/payouts${query}`, { token })
async function idsOf(query: string): Promise<number[]> {
  const { status, body } = await list(query)
  expect(status).toBe(200)
  return body['data'].payouts.map(({ id }: { id: number }) => id)
}
const nth = (...indexes: number[]) => indexes.map((index) => made[index]?.id)

/** Twelve scheduled payouts: the second by OperatorC, the fourth cancelled, the sixth to a beneficiary. */
beforeAll(async () => {
  merchant = await shop()
  const { token } = merchant
  const saved = await fixture.rest('POST', '/beneficiaries', {
    token,
    body: { name: 'Awa', account: '70009901', payment_method: 'OperatorA' },
  })
  beneficiary = saved.body['data'].id
  for (let i = 0; i < 12; i += 1) {
    const { body } = await payOut(merchant, {
      reference: `list/${i} é`,
      scheduled_at: ahead(day),
      ...(i === 1 && { payment_method: 'OperatorC' }),
      ...(i === 5 && { beneficiary_id: beneficiary }),
    })
    made.push({ id: body['data'].id, reference: body['data'].reference })
  }
  await cancel(merchant, made[3]?.id)
  await payOut(await shop(), { reference: 'list/0 é', scheduled_at: ahead(day) })
})

describe('GET /payouts', () => {
  test('gives the newest first, each as it is by its id, with the pagination', async () => {
    const { status, body } = await list('?limit=5&offset=2')
    expect(status).toBe(200)
    expect(body['data'].pagination).toEqual({ total: 12, limit: 5, offset: 2, has_more: true })
    expect(body['data'].payouts.map(({ id }: { id: number }) => id)).toEqual(nth(9, 8, 7, 6, 5))
    expect(body['data'].payouts[4]).toEqual(await record(merchant, made[5]?.id))
    expect((await list('?offset=11')).body['data'].pagination).toMatchObject({ limit: 20, has_more: false })
  })

  test.each<[string, () => (number | undefined)[], number]>([
    ['?status=cancelled', () => nth(3), 1],
    ['?status=pending&limit=1', () => nth(11), 11],
    ['?status=completed', () => [], 0],
    ['?payment_method=OperatorC', () => nth(1), 1],
    ['?payment_method=OperatorA&status=cancelled', () => nth(3), 1],
    ['?payment_method=OperatorC&status=cancelled', () => [], 0],
    ['?payment_method=BankTransfer', () => [], 0],
    ['?reference=list/7%20%C3%A9', () => nth(7), 1],
    ['?reference=list/7%20%C3%A9&status=cancelled', () => [], 0],
    ['?reference=none', () => [], 0],
    ['?beneficiary_id=99999999999', () => [], 0],
    ['?colour=red&limit=1', () => nth(11), 12],
  ])('%s', async (query, ids, total) => {
    const { body } = await list(query)
    expect(body['data'].payouts.map(({ id }: { id: number }) => id)).toEqual(ids())
    expect(body['data'].pagination.total).toBe(total)
  })

  test('filters by beneficiary, named by either id', async () => {
    expect(await idsOf(`?beneficiary_id=${beneficiary}`)).toEqual(nth(5))
    expect(await idsOf(`?beneficiary_id=${btoa(`Beneficiary:${beneficiary}`)}`)).toEqual(nth(5))
    expect(await idsOf(`?beneficiary_id=${btoa(`Payout:${beneficiary}`)}`)).toEqual([])
  })

  test.each([
    ['limit', '101'],
    ['limit', 'ten'],
    ['offset', '-1'],
    ['status', 'paid'],
    ['status', 'PENDING'],
    ['payment_method', 'OperatorE'],
    ['reference', '%00'],
  ])('400 %s=%s names the parameter', async (name, value) => {
    const answer = await list(`?${name}=${value}`)
    expect([answer.status, ...fieldsOf(answer)]).toEqual([400, name])
  })

  test('another merchant sees none of them', async () => {
    const { body } = await list('', (await shop(0)).token)
    expect(body['data']).toEqual({
      payouts: [],
      pagination: { total: 0, limit: 20, offset: 0, has_more: false },
    })
  })

  test('the counts follow every change', async () => {
    const other = await shop(10_000, { threshold: 0 })
    const totals = async () =>
      Promise.all(
        ['', '?status=pending', '?status=cancelled'].map(
          async (query) => (await list(query, other.token)).body['data'].pagination.total,
        ),
      )
    const { body } = await payOut(other)
    expect(await totals()).toEqual([1, 1, 0])
    await cancel(other, body['data'].id)
    expect(await totals()).toEqual([1, 0, 1])
  })
})

describe('GET /payouts/{id}', () => {
  test('404 an unknown id, or one of another merchant, as if it did not exist', async () => {
    const stranger = await shop(0)
    const foreign = await fixture.rest('GET', `/payouts/${made[0]?.id}`, { token: stranger.token })
    const unknownId = await fixture.rest('GET', '/payouts/999999999', { token: stranger.token })
    expect([foreign.status, unknownId.status]).toEqual([404, 404])
    expect({ ...foreign.body, request_id: '' }).toEqual({ ...unknownId.body, request_id: '' })
  })

  test.each(['abc', '0', '-1', '1.5', '99999999999999999999'])('400 an invalid id: %s', async (id) => {
    const answer = await fixture.rest('GET', `/payouts/${id}`, { token: merchant.token })
    expect([answer.status, ...fieldsOf(answer)]).toEqual([400, 'id'])
  })

  test('a payout that was not covered when due shows why, and how to go on', async () => {
    const unfunded = await shop(0)
    const { body } = await payOut(unfunded, { scheduled_at: ahead(1_000) })
    await fixture.advance(2_000)
    await beginPayouts(pool, 'OperatorA', 512)
    await eventually(async () =>
      expect(await record(unfunded, body['data'].id)).toMatchObject({
        status: 'failed',
        failure_reason: 'INSUFFICIENT_BALANCE',
        failure: {
          reason: 'INSUFFICIENT_BALANCE',
          who: 'merchant',
          again: 'later',
          message_fr: expect.stringContaining('solde'),
          message_en: expect.stringContaining('balance'),
        },
        settled_at: expect.any(String),
      }),
    )
  })

  test('a path knows no other method', async () => {
    const { token } = merchant
    const { status, headers } = await fixture.rest('DELETE', `/payouts/${made[0]?.id}`, { token })
    expect([status, headers.get('Allow')]).toEqual([405, 'GET, HEAD'])
  })
})

test('403 without the scope, over REST and GraphQL', async () => {
  const { body } = await fixture.rest('POST', '/auth', {
    headers: { 'X-API-Key': merchant.apiKey, 'X-API-Secret': merchant.apiSecret },
    body: { scopes: ['pay', 'balance', 'deposit'] },
  })
  const token = body['data'].token as string
  const refused = [
    await list('', token),
    await fixture.rest('GET', `/payouts/${made[0]?.id}`, { token }),
    await payOut({ ...merchant, token }),
  ]
  for (const answer of refused)
    expect([answer.status, answer.body['required_scopes']]).toEqual([403, ['payout']])
  for (const document of [
    '{ payouts { totalCount } }',
    'mutation { cancelPayout(id: "1") { __typename } }',
  ]) {
    const answer = await fixture.graphql(document, {}, token)
    expect(answer.body['errors'][0].extensions.code).toBe('FORBIDDEN')
  }
})

describe('payouts in GraphQL', () => {
  const read = async (document: string, variables: object = {}) => {
    const { body } = await fixture.graphql(document, variables, merchant.token)
    return body
  }

  test('a payout is found by its global id, its id in REST and its reference', async () => {
    const [first] = made
    const document = `query ($by: PayoutLookup, $id: ID, $reference: String) {
      payout(by: $by, id: $id, reference: $reference) { id databaseId } }`
    const { data } = await read(document, { by: { id: String(first?.id) } })
    const found = { payout: { id: btoa(`Payout:${first?.id}`), databaseId: first?.id } }
    expect(data).toEqual(found)
    for (const lookup of [{ id: data.payout.id }, { reference: first?.reference }]) {
      expect((await read(document, { by: lookup })).data).toEqual(found)
      expect((await read(document, lookup)).data).toEqual(found)
    }
    const asNode = '($id: ID!) { node(id: $id) { ... on Payout { id databaseId } } }'
    expect((await read(`query ${asNode}`, { id: data.payout.id })).data).toEqual({ node: found.payout })
    expect((await read(document, { id: btoa(`Transaction:${first?.id}`) })).data.payout).toBeNull()
    for (const variables of [{}, { id: '1', reference: 'x' }, { by: { id: '1' }, reference: 'x' }])
      expect((await read(document, variables)).errors[0].extensions.code).toBe('INVALID_INPUT')
  })

  test('forwards and backwards give each payout once, in the order of the list', async () => {
    const pageOf = async (args: string) => {
      const fields = 'nodes { databaseId } pageInfo { startCursor endCursor hasNextPage hasPreviousPage }'
      const { data } = await read(`{ payouts(${args}) { ${fields} } }`)
      return data.payouts
    }
    const ids = (page: { nodes: { databaseId: number }[] }) => page.nodes.map(({ databaseId }) => databaseId)
    const forwards: number[] = []
    let page = await pageOf('first: 5')
    for (forwards.push(...ids(page)); page.pageInfo.hasNextPage; forwards.push(...ids(page)))
      page = await pageOf(`first: 5, after: "${page.pageInfo.endCursor}"`)
    expect(forwards).toEqual(made.map(({ id }) => id).toReversed())
    const backwards = ids(page)
    for (; page.pageInfo.hasPreviousPage; backwards.unshift(...ids(page)))
      page = await pageOf(`last: 5, before: "${page.pageInfo.startCursor}"`)
    expect(backwards).toEqual(forwards)
  })

  test('a cursor and a filter work together', async () => {
    const first = await read('{ payouts(first: 8) { pageInfo { endCursor } } }')
    const after = first.data.payouts.pageInfo.endCursor
    const { data } = await read(
      `query ($after: String) { payouts(after: $after, filter: { status: CANCELLED }) {
        totalCount nodes { databaseId } } }`,
      { after },
    )
    expect(data.payouts).toEqual({ totalCount: 1, nodes: [{ databaseId: made[3]?.id }] })
    const none = await read(`{ payouts(first: 5, after: "${after}", filter: { paymentMethod: BankTransfer }) {
      totalCount nodes { databaseId } } }`)
    expect(none.data.payouts).toEqual({ totalCount: 0, nodes: [] })
  })
})

describe('payoutChanged', () => {
  const follow = (token: string, field: string, fields: string, after: string) => {
    const client = createClient({
      url: `${fixture.url}/graphql`,
      headers: { Authorization: `Bearer ${token}` },
      retryAttempts: 0,
    })
    return client.iterate({
      query: `subscription ($after: String) { ${field}(after: $after) { ${fields} } }`,
      variables: { after },
    })
  }
  async function take(events: ReturnType<typeof follow>, count: number): Promise<Record<string, unknown>[]> {
    const seen: Record<string, unknown>[] = []
    for await (const { data } of events) {
      seen.push(Object.values(data ?? {})[0] as Record<string, unknown>)
      if (seen.length === count) break
    }
    return seen
  }

  test('every change of every payout comes in order, and no other; both streams resume', async () => {
    const other = await shop(10_000, { threshold: 0 })
    const { body } = await payOut(other, { reference: 'p-1' })
    await fixture.paid(other, { reference: 't-1' })
    await cancel(other, body['data'].id)
    await fixture.paid(other, { reference: 't-2' })
    await eventually(async () => {
      const { rows } = await pool.query(
        'SELECT position FROM event_log_position WHERE merchant_id = $1 AND position = 4',
        [other.merchantId],
      )
      expect(rows).toHaveLength(1)
    })
    const fields = 'sequence cursor type status previousStatus reference amount payout { status }'
    const changes = await take(follow(other.token, 'payoutChanged', fields, '0'), 2)
    const common = { reference: 'p-1', amount: 5_000, payout: { status: 'CANCELLED' } }
    const [first, second] = changes
    expect(first).toEqual({
      ...common,
      sequence: Number(first?.['cursor']),
      cursor: expect.any(String),
      type: 'PAYOUT_PENDING',
      status: 'PENDING',
      previousStatus: null,
    })
    expect(second).toMatchObject({ ...common, type: 'PAYOUT_CANCELLED', previousStatus: 'PENDING' })
    // The two streams read one log: together they have every position of it.
    const payments = await take(follow(other.token, 'transactionChanged', 'sequence reference', '0'), 2)
    expect(payments.map(({ reference }) => reference)).toEqual(['t-1', 't-2'])
    const positions = [...changes, ...payments].map(({ sequence }) => Number(sequence))
    expect(positions.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4])
    // A reader that resumes behind the first change gets the second, and the later ones.
    const resumed = follow(other.token, 'payoutChanged', 'reference status', String(first?.['cursor']))
    const live = take(resumed, 2)
    await payOut(other, { reference: 'p-2' })
    expect(await live).toEqual([
      { reference: 'p-1', status: 'CANCELLED' },
      { reference: 'p-2', status: 'PENDING' },
    ])
  })
})

test('the digits after the milliseconds of a scheduled time are cut, over REST and GraphQL', async () => {
  const unfunded = await shop(0)
  const at = ahead(day)
  const between = at.replace('Z', '0001Z')
  const byRest = (await payOut(unfunded, { scheduled_at: between })).body['data']
  const { body } = await fixture.graphql(
    `mutation { createPayout(input: { amount: 5000, paymentMethod: OperatorA, scheduledAt: "${between}",
      destinationPhone: "${customer('00')}" }) { ... on Payout { scheduledAt } } }`,
    {},
    unfunded.token,
  )
  expect([byRest['scheduled_at'], body.data.createPayout.scheduledAt]).toEqual([at, at])
})

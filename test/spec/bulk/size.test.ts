import { expect, test } from 'vitest'
import { scopes } from '../../../src/identity/callers/scopes.ts'
import { limits } from '../../../src/shared/limits.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { openFixture } from '../../kit/fixture.ts'

// As many recipients as a batch has at most, in one call.

const fixture = await openFixture()
const { call, shop, draft, summary } = bulkOn(fixture)
const merchant = await shop(0)
const most = limits.batchRecipientsMax

const people = (count: number) =>
  Array.from({ length: count }, (_, nth) => ({
    name: `Awa Traoré ${nth}`,
    account: `+2237${String(1_000_000 + nth)}`,
    amount: 1_000 + nth,
    payment_method: 'OperatorA',
  }))
const ten = JSON.stringify({ recipients: people(most) })
const total = most * 1_000 + ((most - 1) * most) / 2
const tooMany = (left: number) => [
  {
    field: 'recipients',
    message: `has too many entries: a batch has ${most} at most, and this one has room for ${left}`,
  },
]

async function recipientCount(): Promise<number> {
  const { rows } = await fixture.database.owner.query<{ n: number }>(
    'SELECT count(*)::int AS n FROM batch_recipient',
  )
  return rows[0]?.n ?? -1
}

test('10,000 recipients in one call, while payments beside it are served', async () => {
  let running = true
  const payments: number[] = []
  const paying = (async () => {
    while (running) payments.push((await fixture.pay(merchant)).status)
  })()
  const made = await fixture.rest('POST', '/bulk/batches', { token: merchant.token, body: ten })
  expect(made.status).toBe(201)
  expect(made.body['data']).toMatchObject({ recipient_count: most, total_amount: total })
  const id = await draft(merchant, [])
  const added = await fixture.rest('POST', `/bulk/batches/${id}/recipients`, {
    token: merchant.token,
    body: ten,
  })
  running = false
  await paying
  expect(added.body['data']).toMatchObject({ recipient_count: most, total_amount: total })
  expect(payments.filter((status) => status !== 202)).toEqual([])

  // The batch is full: every call with one more recipient is refused.
  const before = await recipientCount()
  const more = await call(merchant, 'POST', `/${id}/recipients`, { recipients: [row()] })
  expect(more.status).toBe(400)
  expect(more.body['errors']).toEqual(tooMany(0))
  for (const path of ['', `/${await draft(merchant, [])}/recipients`]) {
    const over = await call(merchant, 'POST', path, { recipients: people(most + 1) })
    expect(over.status).toBe(400)
    expect(over.body['errors']).toEqual(tooMany(most))
  }
  expect(await recipientCount()).toBe(before)
  expect(await summary(merchant, id)).toMatchObject({ recipient_count: most, total_amount: total })
})

test('413 a body over 5 MiB; one just below is read', async () => {
  const filled = (bytes: number) => {
    const body = JSON.stringify({ recipients: [row()], note: '' })
    return body.replace('"note":""', `"note":"${'x'.repeat(bytes - Buffer.byteLength(body))}"`)
  }
  const id = await draft(merchant, [])
  for (const [path, status] of [
    ['/bulk/batches', 201],
    [`/bulk/batches/${id}/recipients`, 200],
  ] as const) {
    const send = (bytes: number) => fixture.rest('POST', path, { token: merchant.token, body: filled(bytes) })
    expect((await send(limits.recipientsBodyMaxBytes)).status).toBe(status)
    expect((await send(limits.recipientsBodyMaxBytes + 1)).status).toBe(413)
  }
  const pay = await fixture.rest('POST', '/pay', {
    token: merchant.token,
    body: filled(limits.bodyMaxBytes + 1),
  })
  expect(pay.status).toBe(413)
})

test('400 an object with more fields than any input has', async () => {
  const fields = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, nth) => [`x${nth}`, nth]))
  const within = await call(merchant, 'POST', '', fields(limits.jsonNamesMax))
  expect(within.status).toBe(201)
  const over = await call(merchant, 'POST', '', { recipients: [fields(limits.jsonNamesMax + 1)] })
  expect(over.status).toBe(400)
})

test('400 a body of a million small values is not even parsed', async () => {
  const things = Array.from({ length: 1_000_000 }, () => '[]').join(',')
  const body = `{"recipients":[${things}]}`
  const refused = await fixture.rest('POST', '/bulk/batches', { token: merchant.token, body })
  expect(refused.status).toBe(400)
  expect(refused.body['message']).toBe('The body has more than 100000 objects and lists.')
  const answer = await fetch(`${fixture.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${merchant.token}` },
    body: `{"query":"{ me { id } }","variables":{"a":[${things}]}}`,
  })
  expect(answer.status).toBe(400)
})

const creating = `mutation ($input: CreateBatchInput!) { createBatch(input: $input) {
  ... on BatchPayload { batch { recipientCount totalAmount } }
  ... on InvalidInputError { problems { field message } } } }`
const inGraphql = (count: number) => ({
  input: {
    recipients: people(count).map(({ payment_method: paymentMethod, ...rest }) => ({
      ...rest,
      paymentMethod,
    })),
  },
})

test('10,000 recipients in one call of GraphQL', async () => {
  const made = await fixture.graphql(creating, inGraphql(most), merchant.token)
  expect(made.body['data'].createBatch).toEqual({ batch: { recipientCount: most, totalAmount: total } })
  const over = await fixture.graphql(creating, inGraphql(most + 1), merchant.token)
  expect(over.body['data'].createBatch).toEqual({ problems: tooMany(most) })
})

test('413 in GraphQL for a caller without bulk_pay, and for long documents', async () => {
  const { body } = await fixture.rest('POST', '/auth', {
    headers: { 'X-API-Key': merchant.apiKey, 'X-API-Secret': merchant.apiSecret },
    body: { scopes: scopes.filter((scope) => scope !== 'bulk_pay') },
  })
  const without: TestMerchant = { ...merchant, token: body['data'].token }
  const large = inGraphql(2_000)
  for (const token of [without.token, undefined]) {
    const answer = await fixture.graphql('{ balance { available } }', large, token)
    expect(answer.status).toBe(413)
    expect(answer.body['errors'][0].extensions.code).toBe('BODY_TOO_LARGE')
  }
  const long = `${creating} #${'x'.repeat(limits.bodyMaxBytes)}`
  expect((await fixture.graphql(long, inGraphql(1), merchant.token)).status).toBe(413)
  expect((await fixture.graphql(creating, large, merchant.token)).status).toBe(200)
})

test('10,000 recipients under an Idempotency-Key are one batch', async () => {
  const send = (body: string) =>
    fixture.rest('POST', '/bulk/batches', {
      token: merchant.token,
      body,
      headers: { 'Idempotency-Key': 'salaries' },
    })
  const first = await send(ten)
  const before = await recipientCount()
  const again = await send(ten)
  expect(again.headers.get('idempotent-replayed')).toBe('true')
  expect(again.body).toEqual(first.body)
  const other = await send(ten.replace('Awa Traoré 9999', 'Awa Traoré'))
  expect(other.status).toBe(400)
  expect(await recipientCount()).toBe(before)
})

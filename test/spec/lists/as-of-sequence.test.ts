import { createClient } from 'graphql-sse'
import { expect, test } from 'vitest'
import { withClient } from '../../kit/client.ts'
import { openFixture } from '../../kit/fixture.ts'

// `asOfSequence`: a program that reads and then follows the log from there misses nothing.

const fixture = await openFixture()

const asOf = async (token: string): Promise<number> => {
  const { body } = await fixture.graphql('{ asOfSequence }', {}, token)
  return body.data.asOfSequence
}

test('is the position of the newest event of the merchant', async () => {
  const [shop, other] = [await fixture.merchant(), await fixture.merchant()]
  expect(await asOf(shop.token)).toBe(0)
  await fixture.paid(shop, { customer_phone: '+22370110000' })
  const document = '{ first: asOfSequence asOfSequence events(last: 1) { nodes { sequence } } }'
  const { body } = await fixture.graphql(document, {}, shop.token)
  const { sequence } = body.data.events.nodes[0]
  expect(body.data).toMatchObject({ first: sequence, asOfSequence: sequence })
  expect(sequence).toBeGreaterThan(0)
  expect(await asOf(other.token)).toBe(0)
})

test('is read before anything else of the operation', async () => {
  const shop = await fixture.merchant()
  const document = '{ settings { businessName } asOfSequence }'
  await withClient(fixture.database.owner, async (client) => {
    await client.query('BEGIN; LOCK TABLE event_log_position IN ACCESS EXCLUSIVE MODE')
    const reading = fixture.graphql(document, {}, shop.token)
    await fixture.database.untilWaiting()
    const renamed = `UPDATE merchant SET name = 'Après' WHERE id = ${shop.merchantId}`
    await client.query(`${renamed}; COMMIT`)
    const { body } = await reading
    expect(body).toMatchObject({ data: { settings: { businessName: 'Après' }, asOfSequence: 0 } })
  })
})

test('a subscription from there brings each later change, also one before it began', async () => {
  const shop = await fixture.merchant()
  await fixture.paid(shop, { customer_phone: '+22370110000', reference: 'before' })
  const read = await fixture.graphql('{ asOfSequence transactions { nodes { reference } } }', {}, shop.token)
  expect(read.body.data.transactions.nodes).toEqual([{ reference: 'before' }])
  await fixture.paid(shop, { customer_phone: '+22370110000', reference: 'between' })
  const client = createClient({
    url: `${fixture.url}/graphql`,
    headers: { Authorization: `Bearer ${shop.token}` },
    retryAttempts: 0,
  })
  const query = 'subscription ($after: String) { transactionChanged(after: $after) { reference } }'
  const variables = { after: String(read.body.data.asOfSequence) }
  const references: unknown[] = []
  for await (const { data } of client.iterate<{ transactionChanged: object }>({ query, variables })) {
    references.push(data?.transactionChanged)
    if (references.length === 1)
      await fixture.paid(shop, { customer_phone: '+22370110000', reference: 'after' })
    if (references.length === 2) break
  }
  expect(references).toEqual([{ reference: 'between' }, { reference: 'after' }])
})

test('is for signed-in callers alone', async () => {
  const { body } = await fixture.graphql('{ asOfSequence }')
  expect(body.errors[0].extensions).toMatchObject({ code: 'UNAUTHENTICATED' })
  const left =
    'query ($isAsked: Boolean!) { serviceStatus { __typename } asOfSequence @include(if: $isAsked) }'
  const { body: answer } = await fixture.graphql(left, { isAsked: false })
  expect(answer).toMatchObject({ data: { serviceStatus: { __typename: 'ServiceStatus' } } })
})

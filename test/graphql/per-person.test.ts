import {
  getNamedType,
  type GraphQLField,
  type GraphQLNamedType,
  isCompositeType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
} from 'graphql'
import { createClient } from 'graphql-ws'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { schema } from '../../src/resources/schema.ts'
import { payBy } from '../kit/money-links.ts'
import { settleMany } from '../kit/money.ts'
import { approvalsOn } from '../kit/approvals.ts'
import { batchApprovalsOn } from '../kit/batch-approvals.ts'
import { customer, openFixture } from '../kit/fixture.ts'
import type { TestMerchant } from '../kit/app.ts'

// A live result that several people share must not depend on one of them: every field that a subscription
// reaches is read in a shared document, where the caller's person cannot be read.

const fixture = await openFixture()
const { pool } = fixture.database.database
let merchant: TestMerchant
let person: (role: 'owner') => Promise<{ token: string }>

beforeAll(async () => {
  const { team, waiting, approve } = approvalsOn(fixture)
  const made = await team(2)
  ;({ merchant, person } = made)
  const link = await fixture.rest('POST', '/payment-links', {
    token: merchant.token,
    body: { title: 'Café', amount: 5_000 },
  })
  const attempt = await payBy(pool, link.body['data'].id)
  await settleMany(pool, [{ id: attempt.id, to: 'success' }])
  await fixture.rest('POST', '/webhooks', {
    token: merchant.token,
    body: { url: 'http://127.0.0.1:9/', events: ['test'] },
  })
  await approve(await person('owner'), await waiting(merchant, { destination_phone: customer('00') }))
  await batchApprovalsOn(fixture).waiting(merchant)
})

/** The least number of changes that each subscription delivers. */
const changes: Readonly<Record<string, number>> = {
  approvalsChanged: 3,
  batchProgress: 2,
  events: 6,
  paymentLinkUsed: 1,
  payoutChanged: 1,
  transactionChanged: 2,
}

const subscriptions = Object.values(schema.getSubscriptionType()?.getFields() ?? {})

test('this test covers every subscription', () => {
  expect(subscriptions.map(({ name }) => name).toSorted()).toEqual(Object.keys(changes))
})

test.each(subscriptions.map((field) => [field.name, field] as const))(
  "%s: no field without the mark reads the caller's person",
  async (name, root) => {
    const documents = documentsOf(root)
    expect(documents.length).toBeGreaterThan(0)
    const problems: string[] = []
    // A token opens a limited number of streams at a time.
    const { token } = await person('owner')
    for (const document of documents)
      problems.push(...(await problemsOf(token, document, changes[name] ?? 0)))
    expect(problems).toEqual([])
  },
)

/** For each type that the subscription reaches: its scalar fields, by the shortest path. */
function documentsOf(root: GraphQLField<unknown, unknown>): string[] {
  const documents: string[] = []
  const seen = new Set<GraphQLNamedType>()
  const waiting = [
    { type: getNamedType(root.type), wrap: (set: string) => `${root.name}(after: "0") ${set}` },
  ]
  for (const { type, wrap } of waiting) {
    if (seen.has(type) || !isCompositeType(type)) continue
    seen.add(type)
    const types = isObjectType(type) ? [type] : schema.getPossibleTypes(type)
    for (const each of types) {
      const on = (set: string) =>
        each === type ? wrap(`{ ${set} }`) : wrap(`{ ... on ${each.name} { ${set} } }`)
      const fields = Object.values(each.getFields()).filter(({ args }) => !args.some(isRequiredArgument))
      const isPlain = ({ type: given, extensions }: (typeof fields)[number]) =>
        isLeafType(getNamedType(given)) && !extensions['perPerson']
      const plain = fields.filter(isPlain).map((field) => field.name)
      if (plain.length > 0) documents.push(`subscription { ${on(plain.join(' '))} }`)
      for (const field of fields) {
        waiting.push({ type: getNamedType(field.type), wrap: (set) => on(`${field.name} ${set}`) })
      }
    }
  }
  return documents
}

/** The problems in the first results of a document. */
async function problemsOf(token: string, query: string, count: number): Promise<string[]> {
  const client = createClient({
    url: `${fixture.url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
  })
  onTestFinished(() => void client.dispose())
  let received = 0
  try {
    for await (const { errors } of client.iterate({ query })) {
      const [error] = errors ?? []
      if (error) return [`${query}: ${error.message} at ${error.path?.join('.')}`]
      received += 1
      if (received === count) break
    }
    return []
  } catch (error) {
    return [`${query}: ${JSON.stringify(error)}`]
  } finally {
    await client.dispose()
  }
}

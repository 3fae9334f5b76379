import { createClient } from 'graphql-ws'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { eventually } from '../../kit/eventually.ts'
import { deactivateMerchant } from '../../../src/resources/merchants/deactivate.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'

// Two services on one database without notifications from each other: their listeners are cut.

const callers = 64
let service: TestApp
let urls: string[]
let cutting: NodeJS.Timeout
let cuts = 0
beforeAll(async () => {
  service = await startTestApp()
  urls = [service.url, await service.sibling()]
  cutting = setInterval(() => void cut().catch(() => {}), 20)
})
afterAll(async () => {
  clearInterval(cutting)
  await service.close()
})

/** Cuts a listener that connects again, too. */
async function cut(): Promise<void> {
  const { rowCount } = await service.database.owner.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'merchant-payments listener'`,
  )
  cuts += rowCount ?? 0
}

interface Asking {
  /** Resolves once requests that were sent after a moment have got so many answers. */
  answeredSince(moment: number, count: number): Promise<void>
  /** Stops asking. @returns the statuses of the answers to requests that were sent after a moment */
  end(moment: number): Promise<Set<number>>
}

/** 64 callers that send one request after the other to both services by turns. */
function keepAsking(shop: TestMerchant, path: string, body: (n: number) => object | null): Asking {
  const answers: { status: number; sentAt: number }[] = []
  let over = false
  const done = Array.from({ length: callers }, async (_none, caller) => {
    for (let n = 0; !over; n += 1) {
      const sentAt = performance.now()
      const asked = body(caller * 1_000_000 + n)
      const response = await fetch(`${urls[(caller + n) % 2]}/merchant/api${path}`, {
        method: asked ? 'POST' : 'GET',
        headers: { Authorization: `Bearer ${shop.token}`, 'Content-Type': 'application/json' },
        ...(asked && { body: JSON.stringify(asked) }),
      })
      await response.arrayBuffer()
      answers.push({ status: response.status, sentAt })
    }
  })
  const since = (moment: number) => answers.filter(({ sentAt }) => sentAt > moment)
  onTestFinished(() => void (over = true))
  return {
    async answeredSince(moment, count) {
      await eventually(() => expect(since(moment).length).toBeGreaterThanOrEqual(count))
    },
    async end(moment) {
      over = true
      await Promise.all(done)
      return new Set(since(moment).map(({ status }) => status))
    },
  }
}

const endings: readonly [string, number, (shop: TestMerchant) => Promise<unknown>][] = [
  ['the key is regenerated', 401, regenerate],
  ['the account is deactivated', 403, (shop) => deactivateMerchant(service.app.services, shop.merchantId)],
  ['the whitelist holds another address', 403, shutOut],
]

async function regenerate({ token }: TestMerchant): Promise<void> {
  const { body } = await service.graphql('{ apiKeys { nodes { id } } }', {}, token)
  const [{ id }] = body['data'].apiKeys.nodes
  const document = 'mutation ($id: ID!) { regenerateApiKey(id: $id) { __typename } }'
  const answer = await service.graphql(document, { id }, token)
  expect(answer.body['data'].regenerateApiKey).toEqual({ __typename: 'IssuedApiKey' })
}

/** As another node does. */
async function shutOut({ merchantId }: TestMerchant): Promise<void> {
  await service.database.database.pool.query(
    `UPDATE merchant SET ip_whitelist = '{192.0.2.1}' WHERE id = $1`,
    [merchantId],
  )
}

const collection = (n: number) => ({
  amount: 500,
  customer_phone: '70110000',
  payment_method: 'OperatorA',
  reference: `revoked-${n}`,
})

test.each(endings)(
  'no payment is recorded anywhere from the moment that %s',
  async (_how, refusal, endAccess) => {
    const shop = await service.merchant()
    const payments = async () => {
      const { rows } = await service.database.owner.query<{ count: number }>(
        'SELECT count(*)::int FROM transaction WHERE merchant_id = $1',
        [shop.merchantId],
      )
      return rows[0]?.count ?? 0
    }
    const asking = keepAsking(shop, '/pay', collection)
    await eventually(async () => expect(await payments()).toBeGreaterThan(callers))
    await endAccess(shop)
    const [endedAt, before] = [performance.now(), await payments()]
    await asking.answeredSince(endedAt, callers)
    expect(await asking.end(endedAt)).toEqual(new Set([refusal]))
    expect(await payments()).toBe(before)
  },
)

test('within a second nothing is read with the old token on either service, and streams end', async () => {
  const shop = await service.merchant()
  const closed = urls.map(
    (url) =>
      new Promise<number>((resolve) => {
        const client = createClient({
          url: `${url.replace('http', 'ws')}/graphql`,
          webSocketImpl: WebSocket,
          lazy: false,
          retryAttempts: 0,
          onNonLazyError: () => {},
          connectionParams: { authorization: `Bearer ${shop.token}` },
          on: {
            closed: (event) => resolve((event as CloseEvent).code),
          },
        })
        client.subscribe(
          { query: 'subscription { transactionChanged { sequence } }' },
          { next: () => {}, error: () => {}, complete: () => {} },
        )
      }),
  )
  const asking = keepAsking(shop, '/balance', () => null)
  await asking.answeredSince(0, callers)
  await regenerate(shop)
  const endedAt = performance.now()
  expect(await Promise.all(closed)).toEqual(urls.map(() => 4403))
  await asking.answeredSince(endedAt + 1_000, callers)
  expect(await asking.end(endedAt + 1_000)).toEqual(new Set([401]))
  expect(cuts).toBeGreaterThan(2)
})

test('the old pair signs in nowhere from the moment that its key is regenerated', async () => {
  const shop = await service.merchant()
  await regenerate(shop)
  const answers = await Promise.all(
    urls.map((url) =>
      fetch(`${url}/merchant/api/auth`, {
        method: 'POST',
        headers: { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret },
      }),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual([401, 401])
})

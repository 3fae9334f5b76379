import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { borrow, openClient } from '../../kit/client.ts'
import { databaseUrl } from '../../kit/database-url.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'
import type { TestMerchant } from '../../kit/app.ts'

const fixture = await openFixture()
const { url } = fixture
const name = new URL(fixture.database.url).pathname.slice(1)
let shop: TestMerchant
let link: string
beforeAll(async () => {
  shop = await fixture.merchant()
  await fixture.fund(shop, 1_000_000)
  const body = { title: 'Tournoi', amount: 5_000 }
  const made = await fixture.rest('POST', '/payment-links', { token: shop.token, body })
  link = `/l/${made.body['data'].url_slug}`
})

/** Ends all sessions, and refuses new ones until the test has finished. */
async function stopDatabase(): Promise<void> {
  const server = await openClient(databaseUrl(fixture.database.url, 'postgres'))
  onTestFinished(async () => {
    await server.query(`ALTER DATABASE ${name} WITH ALLOW_CONNECTIONS true`)
    await eventually(async () => expect((await fixture.rest('GET', '/status')).status).toBe(200))
    await eventually(async () => {
      const answer = await fixture.rest('GET', '/balance', { token: shop.token })
      expect(answer.status).toBe(200)
    })
  })
  await server.query(`ALTER DATABASE ${name} WITH ALLOW_CONNECTIONS false`)
  await server.query(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1`, [
    name,
  ])
}

/** Sends a request to a door. @returns what the answer says about the refusal */
async function knock(path: string, init: { method?: string; body?: unknown; headers?: object } = {}) {
  const { method = 'GET', body, headers } = init
  const response = await fetch(`${url}${path}`, {
    method,
    redirect: 'manual',
    headers: {
      Authorization: `Bearer ${shop.token}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: body instanceof URLSearchParams ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, retryAfter: response.headers.get('Retry-After'), text }
}

const payment = { amount: 5_000, payment_method: 'OperatorA', customer_phone: customer('00') }
const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
const doors: [string, () => ReturnType<typeof knock>][] = [
  ['a list', () => knock('/merchant/api/transactions')],
  ['a single read', () => knock('/merchant/api/transactions/1')],
  ['the balance', () => knock('/merchant/api/balance')],
  ['a public read', () => knock('/merchant/api/payment/status/any')],
  ['a payment', () => knock('/merchant/api/pay', { method: 'POST', body: payment })],
  [
    'a payment with a key',
    () =>
      knock('/merchant/api/pay', {
        method: 'POST',
        body: payment,
        headers: { 'Idempotency-Key': 'stopped' },
      }),
  ],
  [
    'the sign-in',
    () => {
      const headers = { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret }
      return knock('/merchant/api/auth', { method: 'POST', headers })
    },
  ],
  ['a download', () => knock('/merchant/api/exports/transactions.csv')],
  ['a page', () => knock(link)],
  [
    'a form',
    () =>
      knock(link, {
        method: 'POST',
        headers: form,
        body: new URLSearchParams({ amount: '5000', phone: '70000001' }),
      }),
  ],
]

describe('while PostgreSQL refuses connections', () => {
  test('every door answers 503 with Retry-After', async () => {
    await stopDatabase()
    const answers: Record<string, unknown> = {}
    for (const [door, ask] of doors) {
      const { status, retryAfter, text } = await ask()
      answers[door] = { status, retryAfter }
      expect(text).not.toContain(name)
    }
    const refused = { status: 503, retryAfter: '1' }
    expect(answers).toEqual(Object.fromEntries(doors.map(([door]) => [door, refused])))
  })

  test('GraphQL says SERVICE_DOWN with retryAfter', async () => {
    await stopDatabase()
    const body = { query: '{ transactions(first: 1) { nodes { amount } } }' }
    const { text } = await knock('/graphql', { method: 'POST', body })
    const [error] = (JSON.parse(text) as { errors: object[] }).errors
    expect(error).toMatchObject({ extensions: { code: 'SERVICE_DOWN', retryAfter: 1 } })
  })

  test('a WebSocket is closed with 1013: try again later', async () => {
    const other = await fixture.merchant()
    await stopDatabase()
    const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws')
    const closed = new Promise<number>((resolve) => socket.once('close', resolve))
    socket.once('open', () => {
      const payload = { authorization: `Bearer ${other.token}` }
      socket.send(JSON.stringify({ type: 'connection_init', payload }))
    })
    expect(await closed).toBe(1013)
  })
})

describe('a session that ends while its statement runs', () => {
  /**
   * Waits until every payment has ended. The service settles a payment in a transaction that has locked the
   * merchant when it comes to the table, so a test that locks the table keeps its own request from there.
   */
  const allEnded = () =>
    eventually(async () => {
      const { rows } = await fixture.database.owner.query(
        `SELECT 'payout ' || id AS open FROM payout WHERE status IN ('pending', 'processing')
         UNION ALL SELECT 'transaction ' || id FROM transaction WHERE status IN ('pending', 'processing')`,
      )
      expect(rows).toEqual([])
    })

  /** Runs `ask` until its statement waits for a lock, ends that session by `end`, and returns the answer. */
  async function interrupted<T>(
    ask: () => Promise<T>,
    end: 'by the server' | 'by the network',
    [table, statement] = ['payout', 'create_payouts'],
  ): Promise<T> {
    await allEnded()
    const owner = await borrow(fixture.database.owner)
    await owner.query(`BEGIN; LOCK TABLE ${table} IN SHARE MODE`)
    const { pool } = fixture.app.services.database
    const clients = new Map<number, { connection: { stream: { destroy(): void } } }>()
    const known = (client: unknown) => {
      const { processID } = client as { processID: number }
      clients.set(processID, client as { connection: { stream: { destroy(): void } } })
    }
    pool.on('acquire', known)
    try {
      const answer = ask()
      const waiting = await eventually(async () => {
        const { rows } = await fixture.database.owner.query<{ pid: number }>(
          `SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
           WHERE NOT l.granted AND l.relation = $1::regclass AND a.query LIKE '%' || $2 || '%'`,
          [table, statement],
        )
        expect(rows).toHaveLength(1)
        return rows[0]?.pid ?? 0
      })
      if (end === 'by the server') {
        await fixture.database.owner.query('SELECT pg_terminate_backend($1, 10000)', [waiting])
      } else clients.get(waiting)?.connection.stream.destroy()
      return await answer
    } finally {
      pool.off('acquire', known)
      await owner.query('COMMIT')
    }
  }
  const asked = { amount: 1_000, payment_method: 'OperatorA', destination_phone: customer('00') }
  const payout = (more: object = {}, headers: Record<string, string> = {}) =>
    fixture.rest('POST', '/payouts', { token: shop.token, body: { ...asked, ...more }, headers })
  const payouts = async () => {
    const { rows } = await fixture.database.owner.query<{ n: number }>(
      'SELECT count(*)::int AS n FROM payout',
    )
    return rows[0]?.n ?? -1
  }
  const told = ({ status, headers, body }: Awaited<ReturnType<typeof payout>>) => ({
    status,
    retryAfter: headers.get('Retry-After'),
    success: body['success'],
  })
  const down = { status: 503, retryAfter: '1', success: false }

  test('by the server: 503, and nothing was written', async () => {
    const before = await payouts()
    expect(told(await interrupted(payout, 'by the server'))).toEqual(down)
    expect(await payouts()).toBe(before)
  })

  test('by the network: 503 where a key or a reference makes the repetition safe, else 500', async () => {
    const headers = { 'Idempotency-Key': 'cut' }
    const before = await payouts()
    expect(told(await interrupted(() => payout({}, headers), 'by the network'))).toEqual(down)
    expect(await payout({}, headers)).toMatchObject({ status: 201 })
    await eventually(async () => expect(await payouts()).toBe(before + 1))

    const named = { reference: 'cut' }
    expect(told(await interrupted(() => payout(named), 'by the network'))).toEqual(down)
    expect([201, 409]).toContain((await payout(named)).status)
    await eventually(async () => expect(await payouts()).toBe(before + 2))

    const unsafe = { status: 500, retryAfter: null, success: false }
    expect(told(await interrupted(payout, 'by the network'))).toEqual(unsafe)
  })

  const phone = customer('00')
  const mutations: [mutation: string, table: string, statement: string, args: (id: number) => string][] = [
    ['createPayout', 'payout', 'create_payouts', () => `destinationPhone: "${phone}"`],
    ['deposit', 'transaction', 'deposit_many', () => `customerPhone: "${phone}"`],
    ['collectPayment', 'transaction', 'collect_many', () => `customerPhone: "${phone}"`],
    ['refundTransaction', 'transaction', 'deposit_many', (id) => `id: "${id}"`],
  ]
  test.each(mutations)('%s by GraphQL: 503 with a reference, 500 without', async (mutation, ...more) => {
    const [table, statement, argsOf] = more
    const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('00') })
    await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('success'))
    const isRefund = mutation === 'refundTransaction'
    const ask = (reference: string) => async () => {
      const operator = isRefund ? '' : ', paymentMethod: OperatorA'
      const args = `amount: 1000, ${argsOf(id as number)}${operator}${reference}`
      const query = `mutation { ${mutation}(${isRefund ? args : `input: { ${args} }`}) { __typename } }`
      const { text } = await knock('/graphql', { method: 'POST', body: { query } })
      const { errors } = JSON.parse(text) as { errors?: { extensions: { code: string } }[] }
      return errors?.[0]?.extensions.code ?? 'made'
    }
    const cut = (reference: string) => interrupted(ask(reference), 'by the network', [table, statement])
    expect(await cut(`, reference: "cut ${mutation}"`)).toBe('SERVICE_DOWN')
    expect(await cut('')).toBe('INTERNAL_SERVER_ERROR')
  })
})

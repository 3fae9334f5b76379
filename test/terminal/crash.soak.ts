import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'graphql-ws'
import { afterEach, expect, test } from 'vitest'
import { eventuallyGives } from '../kit/eventually.ts'
import { providers } from '../../src/shared/providers.ts'
import { randomFrom } from '../kit/random.ts'
import { seed } from '../kit/seeds.ts'
import { admin, call, type Home, newHome, type Running, signIn, startProgram } from '../kit/program.ts'

// The service is killed twice in the middle of a hundred payments, at moments that a seed decides.

const paymentsCount = 100
const atOnce = 8
const controlHeaders = { 'x-control-token': 'sandbox-control' }

let home: Home
let service: Running
afterEach(async () => {
  await service.end('SIGTERM')
  service.destroy()
  await home.remove()
})

interface Payment {
  reference: string
  amount: number
  phone: string
  operator: string
}

/** Each with a customer of its own, who pays after 0 to 2 seconds, and an amount of its own. */
const payments: readonly Payment[] = Array.from({ length: paymentsCount }, (_, index) => ({
  reference: `crash-${index}`,
  amount: 1_000 + index,
  phone: `7000${String(index % 3).padStart(2, '0')}${String(index).padStart(2, '0')}`,
  operator: providers[index % providers.length] ?? 'OperatorA',
}))

test('no payment is lost or doubled when the service is killed in the middle of 100 payments', async () => {
  const random = randomFrom(seed)
  // The count of acknowledged payments before each kill, and some milliseconds more.
  const kills = [15 + Math.floor(random() * 35), 60 + Math.floor(random() * 30)].map((acknowledged) => ({
    acknowledged,
    ms: Math.floor(random() * 30),
  }))
  process.stdout.write(`SEED=${seed}: kill -9 after ${JSON.stringify(kills)}\n`)

  home = await newHome()
  service = await startProgram(home)
  const made = JSON.parse((await admin(home, 'merchant', 'create', '--name', 'Crash', '--json')).stdout)
  const token = await signIn(home, made.api_key, made.api_secret)
  const subscriber = subscribe(token.Authorization)

  const acknowledged = await payThroughCrashes(token, [...kills])
  await advanceClock(token, 'PT2M')
  const openOnes = async () => (await listTransactions(token, 'pending')).map(({ reference }) => reference)
  await eventuallyGives(openOnes, (open) => !open.some((reference) => acknowledged.has(reference)))
  // A customer without a prompt cannot have paid: an open payment ends as expired, after one more query.
  await advanceClock(token, 'PT24H')
  await eventuallyGives(openOnes, (open) => open.length === 0)

  const rows = await listTransactions(token)
  const byReference = new Map(rows.map((row) => [row.reference, row]))
  expect(byReference.size).toBe(paymentsCount)
  for (const [reference, id] of acknowledged) {
    const { amount } = payments.find((payment) => payment.reference === reference) ?? {}
    expect(byReference.get(reference)).toMatchObject({ id, amount, status: 'success' })
  }
  expect(await operatorsBook()).toEqual(
    payments.map(({ reference, amount }) => {
      const paid = byReference.get(reference)?.status === 'success'
      return { reference, taken: paid ? amount : 0 }
    }),
  )
  const paid = rows.filter(({ status }) => status === 'success')
  expect(rows.filter(({ status }) => status === 'expired')).toHaveLength(paymentsCount - paid.length)
  const balance = paid.reduce((sum, { amount }) => sum + amount, 0)
  expect((await call(home, 'GET', '/balance', token)).body['data']).toMatchObject({ balance, reserved: 0 })
  expect(await admin(home, 'ledger', 'verify')).toMatchObject({ code: 0 })

  const sequence = await subscriber.upTo(2 * paymentsCount)
  expect(sequence).toEqual(Array.from({ length: 2 * paymentsCount }, (_, index) => index + 1))
  expect(subscriber.connections()).toBe(1 + kills.length)
  process.stdout.write(`${paid.length} paid, ${acknowledged.size} acknowledged at once\n`)
})

type Token = Awaited<ReturnType<typeof signIn>>

/**
 * Pays with some requests at once; a request without an answer is sent again, as a merchant does.
 * @returns the transaction ids of the acknowledged payments
 */
async function payThroughCrashes(
  token: Token,
  kills: { acknowledged: number; ms: number }[],
): Promise<Map<string, number>> {
  const acknowledged = new Map<string, number>()
  const waiting = [...payments]
  let alive = Promise.resolve()

  async function pay({ reference, amount, phone, operator }: Payment): Promise<void> {
    const order = { reference, amount, customer_phone: phone, payment_method: operator }
    for (;;) {
      await alive
      const answer = await call(home, 'POST', '/pay', token, order).catch(() => null)
      if (answer?.status === 202) acknowledged.set(reference, answer.body['data'].transaction_id)
      if (answer) {
        expect([202, 409]).toContain(answer.status)
        return
      }
      await sleep(20)
    }
  }

  async function killAndRestart(ms: number): Promise<void> {
    await sleep(ms)
    await service.end('SIGKILL')
    service = await startProgram(home)
  }

  async function work(): Promise<void> {
    for (let payment = waiting.shift(); payment; payment = waiting.shift()) {
      await pay(payment)
      const due = kills[0]
      if (!due || acknowledged.size < due.acknowledged) continue
      kills.shift()
      // The other callers find out by themselves.
      const restarted = killAndRestart(due.ms)
      void sleep(due.ms).then(() => (alive = restarted))
      await restarted
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  await alive
  return acknowledged
}

interface Row {
  id: number
  reference: string
  amount: number
  status: string
}

async function listTransactions(token: Token, status?: string): Promise<Row[]> {
  const { body } = await call(
    home,
    'GET',
    `/transactions?limit=100${status ? `&status=${status}` : ''}`,
    token,
  )
  return body['data'].transactions as Row[]
}

async function advanceClock(token: Token, by: string): Promise<void> {
  const answer = await fetch(`${home.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...token },
    body: JSON.stringify({
      query: 'mutation ($by: Duration!) { sandboxAdvanceClock(by: $by) }',
      variables: { by },
    }),
  })
  const { data, errors } = (await answer.json()) as { data?: object; errors?: object[] }
  expect({ data, errors }).toEqual({ data: { sandboxAdvanceClock: expect.any(String) } })
}

/**
 * The amount taken from each customer by the operators' own books: exactly the amount of the payment, or
 * nothing.
 */
async function operatorsBook(): Promise<{ reference: string; taken: number }[]> {
  const ask = async (path: string) =>
    (await fetch(`${home.operatorsUrl}/_sim/${path}`, { headers: controlHeaders })).json()
  expect(await ask('invariants')).toMatchObject({ ok: true, problems: [] })
  return Promise.all(
    payments.map(async ({ reference, phone, operator }) => {
      const msisdn = `+223${phone}`
      const books = (await ask(`accounts?msisdn=${encodeURIComponent(msisdn)}`)) as Record<
        string,
        Record<string, string>
      >
      const opening = 1_000_000
      return { reference, taken: opening - Number(books[operator]?.[`wallet:${msisdn}`] ?? opening) }
    }),
  )
}

/** A reader that goes on from its last cursor whenever its socket ends. */
function subscribe(authorization: string) {
  const read: number[] = []
  let cursor = '0'
  let connections = 0
  let done = false

  async function follow(): Promise<void> {
    while (!done) {
      const client = createClient({
        url: `${home.url.replace('http', 'ws')}/graphql`,
        connectionParams: { authorization },
        retryAttempts: 0,
      })
      const query = 'subscription ($after: String!) { transactionChanged(after: $after) { cursor sequence } }'
      try {
        const changes = client.iterate<{ transactionChanged: { cursor: string; sequence: number } }>({
          query,
          variables: { after: cursor },
        })
        let first = true
        for await (const { data } of changes) {
          if (!data) break
          if (first) connections += 1
          first = false
          cursor = data.transactionChanged.cursor
          read.push(data.transactionChanged.sequence)
        }
      } catch {
        // The service is down; it is back a moment later.
        await sleep(20)
      }
      await client.dispose()
    }
  }
  void follow()
  return {
    /** The number of sockets that brought an event. */
    connections: () => connections,
    async upTo(count: number): Promise<number[]> {
      try {
        await eventuallyGives(
          async () => read.length,
          (length) => length >= count,
        )
      } finally {
        done = true
      }
      return read
    },
  }
}

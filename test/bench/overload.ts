import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { openFixture } from './fixture.ts'
import { load, openWire, quantile, type Request, type Wire } from './load.ts'
import { type Product, startProduct } from './product.ts'
import { numberAboveZero, runProgram, wholeNumber } from '../kit/command-line.ts'

// A program: what the service still does when several times more comes than it can serve. First clients that
// wait for their answers say what it can; then requests come at a fixed rate, answered or not.
//   npm run overload -- [--seconds 8] [--times 3] [--rounds 2]

/**
 * An answer that comes later is of no use to anybody. (see
 * docs/design/architecture.md#overload-and-slow-clients)
 */
const patienceMs = 1_000
const wiresMax = 6_000

type Kind = 'money' | 'status' | 'read' | 'dashboard'
interface Told {
  kind: Kind
  status: number
  ms: number
}

/** The kinds of ten requests. */
const mix: readonly Kind[] = [
  'money',
  'status',
  'read',
  'read',
  'dashboard',
  'money',
  'status',
  'read',
  'read',
  'dashboard',
]

const graphql = JSON.stringify({
  query: '{ transactions(first: 100) { totalCount nodes { reference status amount createdAt } } }',
})

function requestsOf({ merchants }: Product, paid: string) {
  let turn = 0
  return (): [Kind, Request] => {
    const kind = mix[turn % mix.length] ?? 'read'
    const { token = '' } = merchants[turn % merchants.length] ?? {}
    turn += 1
    const headers = { Authorization: `Bearer ${token}` }
    switch (kind) {
      case 'money':
        return [kind, { method: 'POST', path: '/merchant/api/pay', headers, body: payment(randomUUID()) }]
      case 'status':
        return [kind, { method: 'GET', path: `/merchant/api/payment/status/${paid}` }]
      case 'read':
        return [kind, { method: 'GET', path: '/merchant/api/transactions', headers }]
      case 'dashboard':
        return [kind, { method: 'POST', path: '/graphql', headers, body: graphql }]
    }
  }
}

function payment(reference: string): string {
  const customer = { customer_phone: '+22370110000', payment_method: 'OperatorA' }
  return JSON.stringify({ amount: 5_000, reference, ...customer })
}

/** Sends at a rate, on as many connections as it takes. @returns what became of each request */
async function offer(
  port: number,
  { perSecond, seconds }: { perSecond: number; seconds: number },
  next: () => [Kind, Request],
): Promise<Told[]> {
  const free: Wire[] = await Promise.all(Array.from({ length: 200 }, () => openWire(port)))
  let opened = free.length
  const asked: Promise<Told>[] = []
  const begun = performance.now()

  async function ask(kind: Kind, request: Request): Promise<Told> {
    // Counted from the moment at which the request was due: a request that waits for a connection waits too.
    const sent = performance.now()
    const told = (status: number) => ({ kind, status, ms: performance.now() - sent })
    try {
      let wire = free.pop()
      if (!wire) {
        if (opened >= wiresMax) return told(0)
        opened += 1
        wire = await openWire(port)
      }
      const { status } = await wire.send(request)
      free.push(wire)
      return told(status)
    } catch {
      return told(0)
    }
  }

  for (let sent = 0; sent < perSecond * seconds; ) {
    const due = Math.floor(((performance.now() - begun) / 1_000) * perSecond)
    for (; sent < due; sent += 1) asked.push(ask(...next()))
    await new Promise((turn) => setTimeout(turn, 2))
  }
  const told = await Promise.all(asked)
  for (const wire of free) wire.close()
  return told
}

function report(told: readonly Told[], capacity: number, seconds: number): void {
  const useful = told.filter(({ status, ms }) => status >= 200 && status < 300 && ms <= patienceMs)
  const share = (part: number, whole: number) => `${((100 * part) / whole).toFixed(0)} %`
  const rate = useful.length / seconds
  print(`  useful ${rate.toFixed(0)}/s, ${share(rate, capacity)} of capacity`)
  for (const kind of ['money', 'status', 'read', 'dashboard'] as const) {
    const own = told.filter((each) => each.kind === kind)
    const good = useful.filter((each) => each.kind === kind)
    const busy = own.filter(({ status }) => status === 503)
    const p99 = quantile(
      good.map(({ ms }) => ms),
      0.99,
    )
    const others = own.length - good.length - busy.length
    print(
      `  ${kind.padEnd(9)} useful ${share(good.length, own.length)}, 503 ${share(busy.length, own.length)},` +
        ` late or failed ${share(others, own.length)}; p99 ${p99.toFixed(0)} ms`,
    )
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function run(inFlightMax: number | null, seconds: number, times: number): Promise<void> {
  const fixture = await openFixture()
  const product = await startProduct(fixture, 20, inFlightMax)
  try {
    await product.useOperator('accepts')
    const [shop] = product.merchants
    const paid = randomUUID()
    const wire = await openWire(product.port)
    const headers = { Authorization: `Bearer ${shop?.token}` }
    await wire.send({ method: 'POST', path: '/merchant/api/pay', headers, body: payment(paid) })
    wire.close()
    await fixture.owner.query(
      `UPDATE transaction SET status = 'cancelled', settled_at = now() WHERE reference = $1`,
      [paid],
    )
    const next = requestsOf(product, paid)
    const waiting = { port: product.port, connections: 32, seconds, status: null, next: () => next()[1] }
    await load({ ...waiting, seconds: 2 })
    const { value: before } = await load(waiting)
    const offered = before * times
    const words = inFlightMax === null ? 'as it is' : 'without a limit'
    const told = await offer(product.port, { perSecond: offered, seconds }, next)
    // A machine with other work has another capacity every few seconds: both ends are looked at.
    const { value: after } = await load(waiting)
    const capacity = Math.max(before, after)
    const found = `${before.toFixed(0)}/s before, ${after.toFixed(0)}/s after`
    print(`${words}: capacity ${found}; offered ${offered.toFixed(0)}/s`)
    report(told, capacity, seconds)
  } finally {
    await product.close()
    await fixture.close()
  }
}

await runProgram(async () => {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '8' },
      times: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '2' },
    },
  })
  const seconds = numberAboveZero('seconds', values.seconds)
  const times = numberAboveZero('times', values.times)
  const rounds = wholeNumber('rounds', values.rounds)
  for (let round = 0; round < rounds; round += 1) {
    await run(null, seconds, times)
    await run(100_000, seconds, times)
  }
  return 0
})

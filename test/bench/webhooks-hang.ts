import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { runProgram } from '../kit/command-line.ts'
import type { BenchFixture } from './fixture.ts'
import { quantile } from './load.ts'
import { type Product, withProduct } from './product.ts'
import { addEndpoint } from './webhooks.ts'

// A program: how long a healthy webhook waits, alone and beside 80 fresh endpoints of 16 merchants that hang.
//   npm run webhooks-hang

const merchantsThatHang = 16
const endpointsEach = 5
const events = 120
const everyMs = 60
const ratioMax = 1.2

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

await runProgram(() => withProduct(merchantsThatHang + 1, compareWaits))

/** @returns the exit code */
async function compareWaits(product: Product, fixture: BenchFixture): Promise<number> {
  const [healthy, ...hanging] = product.merchants.map(({ merchantId }) => merchantId)
  const arrivedAt: number[] = []
  const healthyUrl = await listen((_request, response) => {
    arrivedAt.push(performance.now())
    response.writeHead(204).end()
  })
  let asked = 0
  const hangingUrl = await listen(() => void (asked += 1))
  let nextId = 0
  const add = (merchantId = 0, url = '') =>
    addEndpoint(fixture, product, { id: ++nextId, merchantId, url, isActive: true })
  const begunAt: number[] = []
  const waits = async () => {
    const first = begunAt.length
    for (let turn = 0; turn < events; turn += 1) {
      begunAt.push(performance.now())
      await happen(fixture, [healthy ?? 0])
      await sleep(Math.max(0, (begunAt[first] ?? 0) + (turn + 1) * everyMs - performance.now()))
    }
    while (arrivedAt.length < begunAt.length) await sleep(10)
    return arrivedAt.slice(first).map((at, turn) => at - (begunAt[first + turn] ?? 0))
  }
  await add(healthy, healthyUrl)
  await waits()
  const alone = await waits()
  for (const merchantId of hanging) {
    for (let endpoint = 0; endpoint < endpointsEach; endpoint += 1) await add(merchantId, hangingUrl)
  }
  await happen(fixture, hanging)
  const beside = await waits()
  const tell = (what: string, all: readonly number[]) =>
    `${what}: p50 ${quantile(all, 0.5).toFixed(0)} ms, p95 ${quantile(all, 0.95).toFixed(0)} ms\n`
  const ratio = quantile(beside, 0.5) / quantile(alone, 0.5)
  process.stdout.write(
    tell('a healthy webhook alone', alone) +
      tell(`beside ${asked} endpoints that hang`, beside) +
      `ratio ${ratio.toFixed(2)} (at most ${ratioMax})\n`,
  )
  return ratio <= ratioMax ? 0 : 1
}

/** One event of each merchant. */
async function happen({ owner }: BenchFixture, merchantIds: readonly number[]): Promise<void> {
  await owner.query(
    `SELECT append_events(array_agg((id, 'payment_received', '{"amount": 5000}'::jsonb)::new_event), now())
     FROM unnest($1::int[]) AS id`,
    [merchantIds],
  )
  await owner.query('SELECT make_missing_deliveries(10000)')
}

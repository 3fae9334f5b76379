import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { MasterSecret } from '../../src/identity/secrets/secrets.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { randomFrom } from '../kit/random.ts'
import { seed } from '../kit/seeds.ts'
import { collectMany, item, settleMany } from '../kit/money.ts'
import { addEndpoint, receive, upTo } from '../kit/webhooks/endpoint-queue.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { type Home, newHome, type Running, startProgram } from '../kit/program.ts'

// A thousand customers pay, by the functions that the service itself calls. Meanwhile the service, which
// numbers and delivers their events, is killed five times, and the receiver drops three calls of ten.

const paymentsCount = 1_000
const atOnce = 20
const killsCount = 5
const secretKey = 'of webhooks through crashes, 1234'

/** A service with a database and operators of their own, which outlive it. */
async function openScenario(): Promise<{ home: Home; db: TestDatabase; service: Running }> {
  const db = await createTestDatabase()
  const simulator = await startSimulator({ port: 0, controlToken: 'sandbox-control' })
  const home = await newHome({
    DATABASE_URL: db.url,
    OPERATORS_URL: simulator.url,
    SECRET_KEY: secretKey,
    // No event is given up: the receiver never drops fifteen calls in a row.
    WEBHOOK_RETRY_SCHEDULE: '1,'.repeat(15).slice(0, -1),
    LOG_LEVEL: 'error',
  })
  const scenario = { home, db, service: await startProgram(home) }
  onTestFinished(async () => {
    await scenario.service.end('SIGTERM')
    scenario.service.destroy()
    await simulator.close()
    await db.drop()
    await home.remove()
  })
  return scenario
}

test('every event arrives, through five kills and a receiver that drops three calls of ten', async () => {
  const random = randomFrom(seed)
  const scenario = await openScenario()
  const { pool } = scenario.db.database
  const receiver = await receive(() => (random() < 0.3 ? (response) => response.destroy() : 204))
  const merchant = await makeMerchant(pool)
  const { merchantId } = merchant
  await addEndpoint(scenario.db, new MasterSecret(Buffer.from(secretKey)), { merchantId, url: receiver.url })

  async function pay(count: number): Promise<void> {
    for (let paid = 0; paid < count; paid += atOnce) {
      const made = await collectMany(
        pool,
        Array.from({ length: atOnce }, () => item(merchant)),
      )
      await settleMany(
        pool,
        made.map(({ transactionId }) => ({ id: transactionId ?? 0n, to: 'success' })),
      )
    }
  }
  for (let kills = 0; kills < killsCount; kills += 1) {
    const paying = pay(paymentsCount / killsCount)
    const before = receiver.calls.length
    const enough = Math.floor(random() * 200)
    await eventually(() => receiver.calls.length - before > enough)
    await scenario.service.end('SIGKILL')
    await paying
    scenario.service = await startProgram(scenario.home)
  }

  const last = 2 * paymentsCount
  const count = (rest: string) =>
    pool.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${rest}`).then(({ rows }) => rows[0]?.n)
  const delivered = () => count(`webhook_delivery WHERE status = 'delivered'`)
  await eventually(async () => expect(await delivered()).toBe(last))
  expect(await count('webhook_delivery')).toBe(last)
  expect(new Set(receiver.taken.map(({ sequence }) => sequence))).toEqual(new Set(upTo(last)))
  // Each id belongs to one event; only dropped or, at a kill, unrecorded deliveries come again.
  const events = new Map(receiver.calls.map(({ id, sequence }) => [id, sequence]))
  expect(events.size).toBe(last)
  expect(receiver.calls.filter(({ id, sequence }) => events.get(id) !== sequence)).toEqual([])
  expect(receiver.taken.length - last).toBeLessThanOrEqual(killsCount * 100)
  process.stdout.write(`${receiver.calls.length} calls, ${receiver.taken.length - last} taken again\n`)
}, 240_000)

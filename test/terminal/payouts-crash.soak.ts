import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventuallyGives } from '../kit/eventually.ts'
import { openSandboxClock } from '../../src/database/sandbox-clock.ts'
import { verifyLedger } from '../../src/ledger/verify.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { type Provider, providers } from '../../src/shared/providers.ts'
import { balanceOf, fundedMerchant } from '../kit/money.ts'
import { createPayouts, payoutItem } from '../kit/money-out.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { type Home, newHome, type Running, startProgram } from '../kit/program.ts'

// Processes over one database are killed in the middle of payouts; operators of one simulator keep the book.

const controlToken = 'sandbox-control'
const payoutsCount = 200
const day = 24 * 3_600_000

let db: TestDatabase
let owner: pg.Pool
let simulator: Simulator
const homes: Home[] = []
const running: Running[] = []

beforeAll(async () => {
  ;[db, simulator] = await Promise.all([createTestDatabase(), startSimulator({ port: 0, controlToken })])
  ;({ owner } = db)
})
afterAll(async () => {
  await Promise.all(running.map((each) => each.end('SIGTERM')))
  for (const each of running) each.destroy()
  await Promise.all(homes.map((home) => home.remove()))
  await simulator.close()
  await db.drop()
})

/** One more process of the service, on the same database, with the same operators. */
async function startNode(): Promise<{ home: Home; node: Running }> {
  const home = await newHome({
    DATABASE_URL: db.url,
    OPERATORS_URL: simulator.url,
    SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
  })
  homes.push(home)
  const node = await startProgram(home)
  running.push(node)
  return { home, node }
}

async function ask<T>(path: string): Promise<T> {
  const answer = await fetch(`${simulator.url}/_sim/${path}`, {
    headers: { 'x-control-token': controlToken },
  })
  return (await answer.json()) as T
}

/** The number of payouts of each status. */
async function statuses(ids: readonly bigint[]): Promise<Record<string, number>> {
  const { rows } = await owner.query<{ status: string; n: number }>(
    'SELECT status::text, count(*)::int AS n FROM payout WHERE id = ANY ($1) GROUP BY status',
    [ids],
  )
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]))
}

/** The number of executions of each payout, by the operators' own book; 0 where the book has none. */
async function executions(ids: readonly bigint[]): Promise<Map<bigint, number>> {
  const { rows } = await owner.query<{ id: bigint; name: string }>(
    `SELECT p.id, r.correlation_id AS name FROM payout p JOIN operator_request r ON r.payout_id = p.id
     WHERE p.id = ANY ($1)`,
    [ids],
  )
  expect(new Set(rows.map(({ name }) => name)).size).toBe(ids.length)
  return new Map(
    await Promise.all(
      rows.map(async ({ id, name }) => {
        const book = await ask<{ executions: { count: number }[] }>(`invariants?clientRef=${name}`)
        return [id, book.executions.reduce((sum, { count }) => sum + count, 0)] as const
      }),
    ),
  )
}

/** The process that sent the payouts of OperatorA: its callback address is in the operator's requests. */
async function senderOf(count: number): Promise<string> {
  const seen = await eventuallyGives(
    async () => {
      const all = await ask<{ operator: Provider; headers: Record<string, string> }[]>('requests')
      return all.filter(({ operator, headers }) => operator === 'OperatorA' && headers['x-callback-url'])
    },
    (requests) => requests.length >= count,
  )
  return new URL(seen[0]?.headers['x-callback-url'] ?? '').origin
}

/** Moves these past minutes of machine time: their fences end, the clock goes on. */
async function letTimePass(ids: readonly bigint[], over: string[], stepMs: number): Promise<void> {
  const clock = await openSandboxClock(owner)
  await eventuallyGives(
    async () => {
      await owner.query(
        `UPDATE operator_request SET fence_until = now() - interval '1 s', query_after = NULL
         WHERE payout_id = ANY ($1) AND state NOT IN ('settled', 'refused', 'closed')`,
        [ids],
      )
      await clock.advance(stepMs)
      await new Promise((resolve) => setTimeout(resolve, 100))
      return statuses(ids)
    },
    (now) => Object.keys(now).every((status) => over.includes(status)),
  )
}

async function make(
  amountOf: (index: number) => { provider: Provider; phone: string },
  count: number,
  at: Date | null,
) {
  const shop = await fundedMerchant(owner, BigInt(count) * 1_000n)
  const made = await createPayouts(
    owner,
    Array.from({ length: count }, (_, index) => payoutItem(shop, { ...amountOf(index), scheduledAt: at })),
  )
  expect(made.filter(({ outcome }) => outcome !== 'made')).toEqual([])
  return { shop, ids: made.map(({ payoutId }) => payoutId ?? 0n) }
}

const operatorAt = (index: number) => providers[index % providers.length] ?? 'OperatorA'
const two = (index: number) => String(index % 100).padStart(2, '0')

test('two processes, 200 payouts that are due, one process killed: each is paid out once', async () => {
  const nodes = await Promise.all([startNode(), startNode()])
  const clock = await openSandboxClock(owner)
  // Answered after a second, so that some are in flight at every moment.
  const { shop, ids } = await make(
    (index) => ({ provider: operatorAt(index), phone: `+223700001${two(index)}` }),
    payoutsCount,
    new Date(clock.now().getTime() + 40 * day),
  )
  await clock.advance(40 * day + 1_000)
  const sender = await senderOf(10)
  const killed = nodes.find(({ home }) => new URL(home.url).port === new URL(sender).port)
  expect(killed).toBeDefined()
  await killed?.node.end('SIGKILL')
  const left = await statuses(ids)
  expect(left['completed'] ?? 0).toBeLessThan(payoutsCount)

  await letTimePass(ids, ['completed'], 5_000)
  expect(await statuses(ids)).toEqual({ completed: payoutsCount })
  expect([...(await executions(ids)).values()]).toEqual(Array(payoutsCount).fill(1))
  expect(await balanceOf(owner, shop.merchantId)).toEqual({ available: 0n, reserved: 0n })
  expect(await ask('invariants')).toMatchObject({ ok: true, problems: [] })
  expect(await verifyLedger(db.database.pool)).toEqual([])
  process.stdout.write(`killed at ${JSON.stringify(left)}\n`)
})

test('killed inside 20 to 27 and 51: each is paid out once, or not at all and no money is lost', async () => {
  await startNode()
  const codes = ['20', '21', '22', '23', '24', '25', '26', '27', '51']
  const { shop, ids } = await make(
    (index) => {
      const code = codes[Math.floor(index / providers.length)] ?? '00'
      // The answer comes after 0 or 1 second; never for 51.
      const parameter = code === '51' ? '00' : '01'
      return { provider: operatorAt(index), phone: `+22370${code}${parameter}${two(index)}` }
    },
    codes.length * providers.length,
    null,
  )
  await eventuallyGives(
    () => statuses(ids),
    ({ pending = 0 }) => pending <= ids.length / 2,
  )
  await Promise.all(running.map((each) => each.end('SIGKILL')))
  const left = await statuses(ids)
  await startNode()
  // The last two reached no operator: they are sent again until the first send is known not to have left.
  const [taken, never] = [ids.slice(0, 7 * providers.length), ids.slice(7 * providers.length)]
  await letTimePass(taken, ['completed'], 10_000)
  const paid = await executions(ids)
  expect(taken.map((id) => paid.get(id))).toEqual(taken.map(() => 1))
  expect(never.map((id) => paid.get(id))).toEqual(never.map(() => 0))
  expect(await statuses(never)).not.toHaveProperty('completed')
  const { available, reserved } = await balanceOf(owner, shop.merchantId)
  expect(available + reserved).toBe(BigInt(never.length) * 1_000n)
  expect(await ask('invariants')).toMatchObject({ ok: true, problems: [] })
  expect(await verifyLedger(db.database.pool)).toEqual([])
  process.stdout.write(`killed at ${JSON.stringify(left)}\n`)
})

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { regenerateApiKey } from '../../src/access/api-keys.ts'
import type { Services } from '../../src/context.ts'
import { verifyLedger } from '../../src/ledger/verify.ts'
import { recordCallback } from '../../src/operators/requests.ts'
import { resolveJob, serviceJobs } from '../../src/resources/jobs.ts'
import { checkPayment } from '../../src/resources/transactions/check.ts'
import { collect } from '../../src/resources/transactions/collect.ts'
import { type Outcome, settleTransaction } from '../../src/resources/transactions/settle.ts'
import { DomainError } from '../../src/shared/errors.ts'
import { master, type TestMerchant } from '../access/merchants.ts'
import { prove, runsOf, seed } from './seed.ts'
import { Turns } from './turns.ts'
import { contextOf, openNode, openWorld, PlayedOperator, type World } from './world.ts'

// Two sides of the service at work on one payment, in every order of their statements and calls that 500
// schedules find. `RUNS=5000` for more of each; a failure prints what replays it.

const minute = 60_000
const day = 24 * 60 * minute
const worlds: World[] = []
afterAll(() => Promise.all(worlds.map(({ db }) => db.drop())))
beforeAll(() => void process.stdout.write(`interleavings: SEED=${seed}\n`))

/** One schedule: a merchant, a payment of 5,000 that the operator has, and two sides that work on it. */
interface Scene {
  world: World
  turns: Turns
  merchant: TestMerchant
  reference: string
  /** The sides: nodes of their own, or one node twice. */
  sides: readonly [Services, Services]
  name(): Promise<string>
  id(): Promise<bigint>
}

interface Found {
  status: string
  late: boolean
  balance: bigint
  events: string[]
  attempt: number
  transactions: number
}

let made = 0

/** Plays a scene in many schedules. @param play makes the payment itself, or calls `begun` */
async function schedules(play: (scene: Scene) => Promise<void>): Promise<void> {
  const world = await openWorld()
  worlds.push(world)
  const property = fc.asyncProperty(fc.scheduler(), fc.boolean(), async (scheduler, isOneNode) => {
    const turns = new Turns(scheduler)
    const operator = new PlayedOperator()
    const open = (side: string) => openNode(turns.pool(side, world.pool), { ...world, operator })
    const first = open('A')
    const merchant = await world.merchant()
    const column = async (what: string) => {
      const { rows } = await world.db.owner.query(
        `SELECT ${what} AS value FROM transaction t JOIN operator_request r ON r.transaction_id = t.id
         WHERE t.merchant_id = $1`,
        [merchant.merchantId],
      )
      return rows[0]?.['value']
    }
    await play({
      world: { ...world, operator },
      turns,
      merchant,
      reference: `r-${(made += 1)}`,
      sides: [first, isOneNode ? first : open('B')],
      name: () => column('r.correlation_id') as Promise<string>,
      id: () => column('t.id') as Promise<bigint>,
    })
  })
  await prove(property, { runs: runsOf(56), seed })
}

async function found({ world, merchant }: Scene): Promise<Found> {
  const { rows } = await world.db.owner.query<Found>(
    `SELECT t.status, t.late, r.attempt, b.available AS balance, count(*) OVER ()::int AS transactions,
       ARRAY(SELECT e.type FROM event e WHERE e.merchant_id = t.merchant_id ORDER BY e.id) AS events
     FROM transaction t JOIN operator_request r ON r.transaction_id = t.id
       JOIN merchant_balance b ON b.merchant_id = t.merchant_id
     WHERE t.merchant_id = $1`,
    [merchant.merchantId],
  )
  if (!rows[0]) throw new Error('there is no transaction')
  return rows[0]
}

/** A payment that was begun outside of the schedule. */
async function begun(scene: Scene, treatment: PlayedOperator['treatment'] = 'normal'): Promise<void> {
  const { operator } = scene.world
  operator.treatment = treatment
  await pay(scene, openNode(scene.world.pool, scene.world))
  operator.treatment = 'normal'
  operator.log.length = 0
  // From here on the operator is asked in turns too.
  operator.arrive = (what) => scene.turns.point(what)
}

function pay({ merchant, reference }: Scene, services: Services) {
  const body = { amount: 5_000, customerPhone: '70000001', paymentMethod: 'OperatorA', reference }
  return collect(contextOf(services, merchant), body as never)
}

async function customer(scene: Scene, state: 'paid' | 'declined'): Promise<void> {
  const operation = scene.world.operator.operations.get(await scene.name())
  if (operation) operation.state = state
}

/** The request may be asked about now, and sent again. */
async function passPauses({ world, merchant }: Scene): Promise<void> {
  await world.db.owner.query(
    `UPDATE operator_request SET query_after = NULL, next_check_at = service_now() - interval '1 s',
       fence_until = now() - interval '1 s' WHERE merchant_id = $1`,
    [merchant.merchantId],
  )
}

/** Nobody asked about it lately, and somebody should. */
async function dueNow({ world, merchant }: Scene): Promise<void> {
  await world.db.owner.query(
    `UPDATE operator_request SET query_after = NULL, next_check_at = service_now() - interval '1 s'
     WHERE merchant_id = $1 AND next_check_at IS NOT NULL`,
    [merchant.merchantId],
  )
}

/** Makes it seem this much older than it is. */
async function age({ world, merchant }: Scene, ms: number): Promise<void> {
  for (const table of ['transaction', 'operator_request']) {
    await world.db.owner.query(
      `UPDATE ${table} SET created_at = created_at - $2 * interval '1 ms'
         ${table === 'transaction' ? `, expires_at = expires_at - $2 * interval '1 ms'` : ''}
       WHERE merchant_id = $1`,
      [merchant.merchantId, ms],
    )
  }
}

async function resolve(services: Services): Promise<void> {
  await serviceJobs(services)
    .find(({ name }) => name === resolveJob('OperatorA'))
    ?.run()
  await Promise.allSettled(services.flights.values())
}

const check = (scene: Scene, services: Services) =>
  checkPayment(services, scene.reference, scene.merchant.merchantId)

const paid: Outcome = {
  status: 'success',
  source: 'query',
  evidence: { operatorRef: 'O', amount: 5_000n, settledAt: new Date(), source: 'query', digest: 'd' },
}
const expired: Outcome = { status: 'expired', source: 'service' }
const refused: Outcome = {
  status: 'failed',
  source: 'query',
  refusal: { reason: 'PAYER_DECLINED', code: 'no', message: 'Declined.' },
}

test.concurrent(
  'settle and settle: credited once',
  () =>
    schedules(async (scene) => {
      await begun(scene)
      const id = await scene.id()
      const [a, b] = scene.sides
      const ends = await scene.turns.run(
        () => settleTransaction(a, id, paid),
        () => settleTransaction(b, id, paid),
      )
      const moved = ends.filter((end) => end.status === 'fulfilled' && end.value.moved)
      expect(moved).toHaveLength(1)
      expect(await found(scene)).toMatchObject({
        status: 'success',
        late: false,
        balance: 5_000n,
        events: ['payment_pending', 'payment_received'],
      })
    }),
  3_600_000,
)

test.concurrent(
  'settle, expire and refuse: paid in the end, credited once, and late where it was over',
  () =>
    schedules(async (scene) => {
      await begun(scene)
      const id = await scene.id()
      const [a, b] = scene.sides
      await scene.turns.run(
        () => settleTransaction(a, id, paid),
        () => settleTransaction(b, id, expired),
        () => settleTransaction(b, id, refused),
      )
      const { events, late, ...rest } = await found(scene)
      expect(rest).toMatchObject({ status: 'success', balance: 5_000n })
      expect(late).toBe(events.length === 3)
      expect(events.filter((type) => type === 'payment_received')).toHaveLength(1)
    }),
  3_600_000,
)

test.concurrent(
  'two resolvers on what may never have left: one asks, and it is sent once more',
  () =>
    schedules(async (scene) => {
      await begun(scene, 'vanished')
      await age(scene, 40_000)
      await passPauses(scene)
      const [a, b] = scene.sides
      await scene.turns.run(
        () => resolve(a),
        () => resolve(b),
        () => check(scene, b).then(() => undefined),
      )
      const { log } = scene.world.operator
      expect(log.filter(({ what }) => what === 'query')).toHaveLength(1)
      expect(log.filter(({ what }) => what === 'collect')).toHaveLength(1)
      expect(await found(scene)).toMatchObject({ status: 'pending', attempt: 2, balance: 0n })
    }),
  3_600_000,
)

test.concurrent(
  'two that both know of no record: the fence lets one of them send',
  () =>
    schedules(async (scene) => {
      await begun(scene, 'vanished')
      await age(scene, 40_000)
      await passPauses(scene)
      const [a, b] = scene.sides
      await scene.turns.run(
        () => resolve(a),
        async () => {
          // As if three seconds had gone by since the other one asked.
          await scene.turns.step('pause', () => dueNow(scene))
          await resolve(b)
        },
      )
      expect(scene.world.operator.log.filter(({ what }) => what === 'collect')).toHaveLength(1)
      expect(await found(scene)).toMatchObject({ status: 'pending', attempt: 2 })
    }),
  3_600_000,
)

test.concurrent(
  'check and callback: the callback is never forgotten',
  () =>
    schedules(async (scene) => {
      await begun(scene)
      await passPauses(scene)
      const name = await scene.name()
      const [a, b] = scene.sides
      const callback = { provider: 'OperatorA', dedupeKey: name, body: '{}', requestId: null } as const
      await scene.turns.run<unknown>(
        () => check(scene, a),
        async () => {
          await scene.turns.step('customer', () => customer(scene, 'paid'))
          await recordCallback(b.database.pool, { ...callback, correlationId: name })
          await recordCallback(b.database.pool, { ...callback, correlationId: name })
        },
      )
      // Whatever the check heard, and noted after the callback: the next run of the schedule asks.
      await scene.world.db.owner.query(
        'UPDATE operator_request SET query_after = NULL WHERE merchant_id = $1',
        [scene.merchant.merchantId],
      )
      await scene.turns.run(() => resolve(b))
      expect(await found(scene)).toMatchObject({ status: 'success', late: false, balance: 5_000n })
    }),
  3_600_000,
)

test.concurrent(
  'expiry and a late customer: never expired where the operator had said that it is paid',
  () =>
    schedules(async (scene) => {
      await begun(scene)
      await age(scene, day + minute)
      await passPauses(scene)
      const [a, b] = scene.sides
      await scene.turns.run<unknown>(
        () => resolve(a),
        () => check(scene, b),
        async () => {
          await scene.turns.step('customer', () => customer(scene, 'paid'))
        },
      )
      const heard = scene.world.operator.log.at(-1)?.answer
      expect(await found(scene)).toMatchObject(
        heard === 'settled' ? { status: 'success', balance: 5_000n } : { status: 'expired', balance: 0n },
      )
    }),
  3_600_000,
)

test.concurrent(
  'the first answer, a resolver and a check: one credit, and nothing is sent twice',
  () =>
    schedules(async (scene) => {
      const { operator } = scene.world
      operator.treatment = 'instant'
      operator.arrive = (what) => scene.turns.point(what)
      const [a, b] = scene.sides
      await scene.turns.run<unknown>(
        () => pay(scene, a),
        async () => {
          await scene.turns.step('later', () => dueNow(scene))
          await resolve(b)
        },
      )
      expect(operator.log.filter(({ what }) => what === 'collect')).toHaveLength(1)
      expect(await found(scene)).toMatchObject({
        status: 'success',
        balance: 5_000n,
        transactions: 1,
        attempt: 1,
      })
    }),
  3_600_000,
)

test.concurrent(
  'collect and collect under one reference: one payment, and the other hears of it',
  () =>
    schedules(async (scene) => {
      const [a, b] = scene.sides
      scene.world.operator.arrive = (what) => scene.turns.point(what)
      const ends = await scene.turns.run(
        () => pay(scene, a),
        () => pay(scene, b),
      )
      const lost = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
      expect(lost).toMatchObject([
        { code: 'DUPLICATE_REFERENCE', detail: { existingTransaction: { id: await scene.id() } } },
      ])
      expect(scene.world.operator.log).toHaveLength(1)
      expect(await found(scene)).toMatchObject({ transactions: 1, events: ['payment_pending'] })
    }),
  3_600_000,
)

test.concurrent(
  'collect and a new key: the old one takes no money once the new one is there',
  () =>
    schedules(async (scene) => {
      const [a, b] = scene.sides
      const { merchantId, apiKeyId } = scene.merchant
      scene.world.operator.arrive = (what) => scene.turns.point(what)
      const [end] = await scene.turns.run<unknown>(
        () => pay(scene, a),
        () => regenerateApiKey(b.database.pool, master, { merchantId, apiKeyId }),
      )
      const order = scene.turns.taken.map((label) => label.slice(2))
      const wasFirst =
        order.indexOf('collect_many') < order.findIndex((label) => label.startsWith('UPDATE api_key'))
      const isRefused = end?.status === 'rejected'
      const code = isRefused && end.reason instanceof DomainError ? end.reason.code : null
      expect({ isRefused, code }).toEqual({ isRefused: !wasFirst, code: wasFirst ? null : 'UNAUTHENTICATED' })
      const { rowCount } = await scene.world.db.owner.query(
        'SELECT FROM transaction WHERE merchant_id = $1',
        [merchantId],
      )
      expect(rowCount).toBe(wasFirst ? 1 : 0)
      expect(scene.world.operator.log).toHaveLength(wasFirst ? 1 : 0)
    }),
  3_600_000,
)

test('and in the books of all of them no invariant is broken', async () => {
  expect(worlds.length).toBeGreaterThan(0)
  for (const { db } of worlds) {
    await db.owner.query('SELECT sequence_events(1000000)')
    expect(await verifyLedger(db.database.pool)).toEqual([])
  }
})

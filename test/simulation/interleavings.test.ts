import { afterAll, beforeAll, expect, test } from 'vitest'
import { regenerateApiKey } from '../../src/identity/api-keys.ts'
import { recordCallback } from '../../src/requests/record-callback.ts'
import { reverseTransaction } from '../../src/resources/transactions/reverse.ts'
import type { Outcome } from '../../src/requests/ending.ts'
import { settleTransaction } from '../../src/resources/transactions/settle.ts'
import { DomainError } from '../../src/shared/errors.ts'
import { master } from '../kit/merchants.ts'
import {
  age,
  begun,
  check,
  customer,
  dueNow,
  endFence,
  found,
  passPauses,
  pay,
  resolve,
  schedules,
  worlds,
} from './scene.ts'
import { seed } from './seed.ts'
import { judge } from './world.ts'

// Two sides of the service at work on one payment, in every order of their statements and calls that 500
// schedules find. `RUNS=5000` for more of each; a failure prints what replays it.

const minute = 60_000
const day = 24 * 60 * minute
afterAll(() => Promise.all(worlds.splice(0).map(({ db }) => db.drop())))
beforeAll(() => void process.stdout.write(`interleavings: SEED=${seed}\n`))

const paid = {
  status: 'success',
  source: 'query',
  watchMs: null,
  evidence: { operatorRef: 'O', amount: 5_000n, settledAt: new Date(), source: 'query', digest: 'd' },
} as const
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
      expect(ends.map((end) => end.status)).toEqual(['fulfilled', 'fulfilled'])
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

test.concurrent.each([
  ['two that heard of no record', 'vanished'],
  ['two that know that nothing left', 'unsent'],
] as const)(
  '%s: the fence lets one of them send',
  (_what, treatment) =>
    schedules(async (scene) => {
      await begun(scene, treatment)
      await age(scene, 40_000)
      await passPauses(scene)
      // Also the second send leaves no trace here: only its number and its time tell that there was one.
      scene.world.operator.treatment = 'lost'
      const [a, b] = scene.sides
      await scene.turns.run(
        async () => {
          await resolve(a)
          // What the other one knows may be half a minute old: then the fence is down when it comes.
          await scene.turns.step('half a minute', () => endFence(scene))
        },
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
      const callback = {
        provider: 'OperatorA',
        dedupeKey: name,
        body: '{}',
        requestId: null,
        says: 'settled',
      } as const
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
      const wasFirst = order.indexOf('collect_many') < order.indexOf('regenerate_api_key')
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

test.concurrent(
  'settle and take back: reversed once, and only after it was paid',
  () =>
    schedules(async (scene) => {
      await begun(scene)
      await customer(scene, 'paid')
      await passPauses(scene)
      const [a, b] = scene.sides
      const id = await scene.id()
      await scene.turns.run<unknown>(
        () => check(scene, a),
        () => reverseTransaction(b, id, paid.evidence),
        () => reverseTransaction(a, id, paid.evidence),
      )
      const { status, events, balance } = await found(scene)
      const isReversed = status === 'reversed'
      expect({ events, balance }).toEqual({
        events: ['payment_pending', 'payment_received', ...(isReversed ? ['payment_reversed'] : [])],
        balance: isReversed ? 0n : 5_000n,
      })
    }),
  3_600_000,
)

test('and in the books of all of them no invariant is broken', async () => {
  expect(worlds.length).toBeGreaterThan(0)
  for (const world of worlds) expect(await judge(world)).toEqual([])
})

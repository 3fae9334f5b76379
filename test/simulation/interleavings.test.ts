import { afterAll, expect, test } from 'vitest'
import type { Services } from '../../src/context.ts'
import { regenerateApiKey } from '../../src/identity/keys/api-keys.ts'
import { recordAndAsk, recordCallback } from '../../src/requests/record-callback.ts'
import { reverseTransaction } from '../../src/resources/transactions/reverse.ts'
import type { RequestOutcome } from '../../src/requests/outcome.ts'
import { settleTransaction } from '../../src/resources/transactions/settle.ts'
import { DomainError } from '../../src/shared/errors.ts'
import { master } from '../kit/merchants.ts'
import {
  age,
  beginPayment,
  check,
  customer,
  dueNow,
  endFence,
  readOutcome,
  passPauses,
  pay,
  resolve,
  schedules,
  environments,
  type TimedScenario,
} from './scenario.ts'
import { findProblems } from './environment.ts'

// Two sides of the service work on one payment, in every order of their statements and calls that 500
// schedules find. `RUNS=5000` tries more orders; a failure prints the command that replays it.

const minute = 60_000
const day = 24 * 60 * minute
afterAll(() => Promise.all(environments.splice(0).map(({ db }) => db.drop())))

const paid = (id: bigint) =>
  ({
    status: 'success',
    source: 'query',
    watchMs: null,
    evidence: { operatorRef: `O${id}`, amount: 5_000n, settledAt: new Date(), source: 'query', digest: 'd' },
  }) as const
const paidInTime = { status: 'success', late: false, balance: 5_000n }
const expired: RequestOutcome = { status: 'expired', source: 'service' }
const refused: RequestOutcome = {
  status: 'failed',
  source: 'query',
  refusal: { reason: 'PAYER_DECLINED', code: 'no', message: 'Declined.' },
}

/** The outcome after one more run of the job that asks about requests. */
async function outcomeOfNextRun(scenario: TimedScenario, node: Services) {
  await scenario.environment.db.owner.query(
    'UPDATE operator_request SET query_after = NULL WHERE merchant_id = $1',
    [scenario.merchant.merchantId],
  )
  await scenario.turns.run(() => resolve(node))
  return readOutcome(scenario)
}

test.concurrent(
  'settle and settle: credited once',
  () =>
    schedules(async (scenario) => {
      await beginPayment(scenario)
      const id = await scenario.id()
      const [a, b] = scenario.sides
      const ends = await scenario.turns.run(
        () => settleTransaction(a, id, paid(id)),
        () => settleTransaction(b, id, paid(id)),
      )
      expect(ends.map((end) => end.status)).toEqual(['fulfilled', 'fulfilled'])
      const moved = ends.filter((end) => end.status === 'fulfilled' && end.value.moved)
      expect(moved).toHaveLength(1)
      expect(await readOutcome(scenario)).toMatchObject({
        status: 'success',
        late: false,
        balance: 5_000n,
        events: ['payment_pending', 'payment_received'],
      })
    }),
  3_600_000,
)

test.concurrent(
  'settle, expire and refuse: paid in the end, credited once, and late where it was over before',
  () =>
    schedules(async (scenario) => {
      await beginPayment(scenario)
      const id = await scenario.id()
      const [a, b] = scenario.sides
      await scenario.turns.run(
        () => settleTransaction(a, id, paid(id)),
        () => settleTransaction(b, id, expired),
        () => settleTransaction(b, id, refused),
      )
      const { events, late, ...rest } = await readOutcome(scenario)
      expect(rest).toMatchObject({ status: 'success', balance: 5_000n })
      expect(late).toBe(events.length === 3)
      expect(events.filter((type) => type === 'payment_received')).toHaveLength(1)
    }),
  3_600_000,
)

test.concurrent(
  'two resolvers on a payment that may never have left: one asks, and it is sent once more',
  () =>
    schedules(async (scenario) => {
      await beginPayment(scenario, 'vanished')
      await age(scenario, 40_000)
      await passPauses(scenario)
      const [a, b] = scenario.sides
      await scenario.turns.run(
        () => resolve(a),
        () => resolve(b),
        () => check(scenario, b).then(() => undefined),
      )
      const { log } = scenario.environment.operator
      expect(log.filter(({ what }) => what === 'query')).toHaveLength(1)
      expect(log.filter(({ what }) => what === 'collect')).toHaveLength(1)
      expect(await readOutcome(scenario)).toMatchObject({ status: 'pending', attempt: 2, balance: 0n })
    }),
  3_600_000,
)

test.concurrent.each([
  ['two that heard of no record', 'vanished'],
  ['two that know that nothing left', 'unsent'],
] as const)(
  '%s: the fence lets one of them send',
  (_what, treatment) =>
    schedules(async (scenario) => {
      await beginPayment(scenario, treatment)
      await age(scenario, 40_000)
      await passPauses(scenario)
      // The second send leaves no trace at the operator either: only its number and its time tell of it.
      scenario.environment.operator.treatment = 'lost'
      const [a, b] = scenario.sides
      await scenario.turns.run(
        async () => {
          await resolve(a)
          // The other resolver may know a state that is half a minute old: then the fence is down when it
          // comes.
          await scenario.turns.step('half a minute', () => endFence(scenario))
        },
        async () => {
          // As if three seconds had gone by since the other resolver asked.
          await scenario.turns.step('pause', () => dueNow(scenario))
          await resolve(b)
        },
      )
      expect(scenario.environment.operator.log.filter(({ what }) => what === 'collect')).toHaveLength(1)
      expect(await readOutcome(scenario)).toMatchObject({ status: 'pending', attempt: 2 })
    }),
  3_600_000,
)

test.concurrent(
  'check and callback: the callback is never forgotten',
  () =>
    schedules(async (scenario) => {
      await beginPayment(scenario)
      await passPauses(scenario)
      const name = await scenario.name()
      const [a, b] = scenario.sides
      const callback = {
        provider: 'OperatorA',
        dedupeKey: name,
        body: '{}',
        requestId: null,
        says: 'settled',
      } as const
      await scenario.turns.run<unknown>(
        () => check(scenario, a),
        async () => {
          await scenario.turns.step('customer', () => customer(scenario, 'paid'))
          await recordCallback(b, { ...callback, correlationId: name })
          await recordCallback(b, { ...callback, correlationId: name })
        },
      )
      // The check may record an older answer after the callback: the next run of the schedule asks again.
      expect(await outcomeOfNextRun(scenario, b)).toMatchObject(paidInTime)
    }),
  3_600_000,
)

test.concurrent(
  'check and a callback that is asked about at once: paid once, and never forgotten',
  () =>
    schedules(async (scenario) => {
      await beginPayment(scenario)
      await passPauses(scenario)
      const name = await scenario.name()
      const [a, b] = scenario.sides
      const callback = { provider: 'OperatorA', body: '{}', requestId: null, says: 'settled' } as const
      await scenario.turns.run<unknown>(
        () => check(scenario, a),
        async () => {
          await scenario.turns.step('customer', () => customer(scenario, 'paid'))
          await recordAndAsk(b, { ...callback, dedupeKey: name, correlationId: name })
          await Promise.allSettled(b.inFlight.values())
        },
      )
      // Both questions may have come before the customer: the next run of the schedule asks.
      expect(await outcomeOfNextRun(scenario, b)).toMatchObject(paidInTime)
    }),
  3_600_000,
)

test.concurrent(
  'expiry and a late customer: never expired where the operator had answered that it is paid',
  () =>
    schedules(async (scenario) => {
      await beginPayment(scenario)
      await age(scenario, day + minute)
      await passPauses(scenario)
      const [a, b] = scenario.sides
      await scenario.turns.run<unknown>(
        () => resolve(a),
        () => check(scenario, b),
        async () => {
          await scenario.turns.step('customer', () => customer(scenario, 'paid'))
        },
      )
      const heard = scenario.environment.operator.log.at(-1)?.answer
      expect(await readOutcome(scenario)).toMatchObject(
        heard === 'settled' ? { status: 'success', balance: 5_000n } : { status: 'expired', balance: 0n },
      )
    }),
  3_600_000,
)

test.concurrent(
  'the first answer, a resolver and a check: one credit, and nothing is sent twice',
  () =>
    schedules(async (scenario) => {
      const { operator } = scenario.environment
      operator.treatment = 'instant'
      operator.arrive = (what) => scenario.turns.point(what)
      const [a, b] = scenario.sides
      await scenario.turns.run<unknown>(
        () => pay(scenario, a),
        async () => {
          await scenario.turns.step('later', () => dueNow(scenario))
          await resolve(b)
        },
      )
      expect(operator.log.filter(({ what }) => what === 'collect')).toHaveLength(1)
      expect(await readOutcome(scenario)).toMatchObject({
        status: 'success',
        balance: 5_000n,
        transactions: 1,
        attempt: 1,
      })
    }),
  3_600_000,
)

test.concurrent(
  'collect and collect under one reference: one payment is made, and the other call gets its id',
  () =>
    schedules(async (scenario) => {
      const [a, b] = scenario.sides
      scenario.environment.operator.arrive = (what) => scenario.turns.point(what)
      const ends = await scenario.turns.run(
        () => pay(scenario, a),
        () => pay(scenario, b),
      )
      const lost = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
      expect(lost).toMatchObject([
        { code: 'DUPLICATE_REFERENCE', detail: { existingTransaction: { id: await scenario.id() } } },
      ])
      expect(scenario.environment.operator.log).toHaveLength(1)
      expect(await readOutcome(scenario)).toMatchObject({ transactions: 1, events: ['payment_pending'] })
    }),
  3_600_000,
)

test.concurrent(
  'collect and a new key: the old key takes no money once the new key exists',
  () =>
    schedules(async (scenario) => {
      const [a, b] = scenario.sides
      const { merchantId, apiKeyId } = scenario.merchant
      scenario.environment.operator.arrive = (what) => scenario.turns.point(what)
      const [end] = await scenario.turns.run<unknown>(
        () => pay(scenario, a),
        () => regenerateApiKey(b.database.pool, master, { merchantId, apiKeyId }),
      )
      const order = scenario.turns.taken.map((label) => label.slice(2))
      const wasFirst = order.indexOf('collect_many') < order.indexOf('regenerate_api_key')
      const isRefused = end?.status === 'rejected'
      const code = isRefused && end.reason instanceof DomainError ? end.reason.code : null
      expect({ isRefused, code }).toEqual({ isRefused: !wasFirst, code: wasFirst ? null : 'UNAUTHENTICATED' })
      const { rowCount } = await scenario.environment.db.owner.query(
        'SELECT FROM transaction WHERE merchant_id = $1',
        [merchantId],
      )
      expect(rowCount).toBe(wasFirst ? 1 : 0)
      expect(scenario.environment.operator.log).toHaveLength(wasFirst ? 1 : 0)
    }),
  3_600_000,
)

test.concurrent(
  'settle and reverse: reversed once, and only after it was paid',
  () =>
    schedules(async (scenario) => {
      await beginPayment(scenario)
      await customer(scenario, 'paid')
      await passPauses(scenario)
      const [a, b] = scenario.sides
      const id = await scenario.id()
      await scenario.turns.run<unknown>(
        () => check(scenario, a),
        () => reverseTransaction(b, id, paid(id).evidence),
        () => reverseTransaction(a, id, paid(id).evidence),
      )
      const { status, events, balance } = await readOutcome(scenario)
      const isReversed = status === 'reversed'
      expect({ events, balance }).toEqual({
        events: ['payment_pending', 'payment_received', ...(isReversed ? ['payment_reversed'] : [])],
        balance: isReversed ? 0n : 5_000n,
      })
    }),
  3_600_000,
)

test('afterwards no invariant is broken in any of the books', async () => {
  expect(environments.length).toBeGreaterThan(0)
  for (const environment of environments) expect(await findProblems(environment)).toEqual([])
})

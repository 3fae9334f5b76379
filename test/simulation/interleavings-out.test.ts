import { afterAll, expect, test } from 'vitest'
import { fund as fundOnce } from '../../src/ledger/post.ts'
import type { Services } from '../../src/context.ts'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import { cancelPayout } from '../../src/resources/payouts/cancel.ts'
import { createPayout } from '../../src/resources/payouts/create.ts'
import { sendDuePayouts } from '../../src/resources/payouts/send.ts'
import { settlePayout } from '../../src/resources/payouts/settle.ts'
import { reverseDisbursement } from '../../src/resources/disbursements/reverse.ts'
import { deposit } from '../../src/resources/transactions/deposit.ts'
import { refundTransaction } from '../../src/resources/transactions/refund.ts'
import { openCollection, settleMany } from '../kit/money.ts'
import {
  beginPayment,
  dueNow,
  passPauses,
  resolve,
  type TimedScenario,
  schedules,
  environments,
} from './scenario.ts'
import { contextOf, findProblems, openNode, openEnvironment, type Treatment } from './environment.ts'

// Two sides of the service work on money out, in every order of their statements and calls that the scheduler
// finds. `RUNS=5000` tries more orders; a failure prints the command that replays it.

afterAll(() => Promise.all(environments.splice(0).map(({ db }) => db.drop())))

const evidenceOf = (id: bigint) =>
  ({ operatorRef: `O${id}`, amount: 3_000n, settledAt: new Date(), source: 'query', digest: 'd' }) as const
const paid = (id: bigint) =>
  ({ status: 'success', source: 'query', watchMs: null, evidence: evidenceOf(id) }) as const
const refused = {
  status: 'failed',
  source: 'query',
  refusal: { reason: 'UNSPECIFIED', code: 'no', message: 'Refused.' },
} as const

const payee = {
  customerPhone: '70000001',
  paymentMethod: 'OperatorA',
} as const

/** A merchant calls a verb on one of the nodes. */
function callVerb<T>(
  { merchant }: TimedScenario,
  services: Services,
  verb: (ctx: ReturnType<typeof contextOf>) => Promise<T>,
): Promise<T> {
  return asMerchant(merchant.merchantId, () => verb(contextOf(services, merchant)))
}

/** Funds the merchant of a scenario, once however often it is called. */
async function fund({ environment, merchant }: TimedScenario, amount: bigint): Promise<void> {
  const origin = `funding:${merchant.merchantId}`
  await fundOnce(environment.pool, { merchant: merchant.merchantId, origin, amount })
}

/** Makes a waiting payout of 3,000 for a merchant that has 5,000. */
async function payoutOf(scenario: TimedScenario, scheduledAt?: Date): Promise<bigint> {
  await fund(scenario, 5_000n)
  const destination = {
    destinationPhone: '70000001',
    paymentMethod: 'OperatorA',
  } as const
  const input = {
    ...destination,
    amount: 3_000,
    ...(scheduledAt && { scheduledAt }),
  }
  const { id } = await callVerb(scenario, openNode(scenario.environment), (ctx) => createPayout(ctx, input))
  // From here on a call to the operator waits for its turn too.
  scenario.environment.operator.arrive = (what) => scenario.turns.point(what)
  return id
}

/** Makes the same payout, begun and sent. */
async function sentPayout(scenario: TimedScenario, treatment: Treatment): Promise<bigint> {
  const { operator } = scenario.environment
  const id = await payoutOf(scenario)
  operator.arrive = async () => {}
  operator.treatment = treatment
  await sendDuePayouts(openNode(scenario.environment), 'OperatorA')
  operator.treatment = 'normal'
  operator.log.length = 0
  operator.arrive = (what) => scenario.turns.point(what)
  return id
}

async function readOutcomeOut({ environment, merchant }: TimedScenario) {
  const { rows } = await environment.db.owner.query(
    `SELECT b.available, b.reserved, p.status, p.reversed_at IS NOT NULL AS back, (
         SELECT max(r.attempt) FROM operator_request r
         WHERE r.merchant_id = b.merchant_id AND r.kind = 'disburse'
       ) AS attempt,
       (SELECT count(*)::int FROM transaction t WHERE t.merchant_id = b.merchant_id
          AND t.transaction_type = 'deposit') AS deposits,
       ARRAY(SELECT e.type FROM event e WHERE e.merchant_id = b.merchant_id ORDER BY e.id) AS events
     FROM merchant_balance b LEFT JOIN payout p ON p.merchant_id = b.merchant_id WHERE b.merchant_id = $1`,
    [merchant.merchantId],
  )
  return rows[0] as Record<string, unknown> & { events: string[] }
}

const sent = ({ environment }: TimedScenario) =>
  environment.operator.log.filter(({ what }) => what === 'disburse').length
const codes = (ends: PromiseSettledResult<unknown>[]) =>
  ends.map((end) => (end.status === 'fulfilled' ? 'done' : String((end.reason as { code?: string }).code)))

test.concurrent(
  'begin, begin and cancel: a payout is cancelled and never sent, or sent once and not cancelled',
  () =>
    schedules(async (scenario) => {
      const id = await payoutOf(scenario)
      const [a, b] = scenario.sides
      const [, , end] = await scenario.turns.run<unknown>(
        () => sendDuePayouts(a, 'OperatorA'),
        () => sendDuePayouts(b, 'OperatorA'),
        () => callVerb(scenario, b, (ctx) => cancelPayout(ctx, id)),
      )
      const isCancelled = end?.status === 'fulfilled'
      expect(sent(scenario)).toBe(isCancelled ? 0 : 1)
      expect(await readOutcomeOut(scenario)).toMatchObject(
        isCancelled
          ? { status: 'cancelled', available: 5_000n, reserved: 0n }
          : { status: 'processing', available: 2_000n, reserved: 3_000n },
      )
    }),
  3_600_000,
)

test.concurrent(
  'settle, refuse and reverse a payout: one outcome counts, and only a paid payout comes back',
  () =>
    schedules(async (scenario) => {
      const id = await sentPayout(scenario, 'normal')
      const [a, b] = scenario.sides
      await scenario.turns.run<unknown>(
        () => settlePayout(a, id, paid(id)),
        () => settlePayout(b, id, refused),
        () => settlePayout(b, id, paid(id)),
        () => reverseDisbursement(a, 'payout', id, evidenceOf(id)),
      )
      const { status, back, events, available } = await readOutcomeOut(scenario)
      const isPaid = status === 'completed'
      expect({ events, available }).toEqual({
        events: [
          'payout_pending',
          'payout_processing',
          isPaid ? 'payout_completed' : 'payout_failed',
          ...(back ? ['payout_reversed'] : []),
        ],
        available: isPaid && !back ? 2_000n : 5_000n,
      })
      expect(isPaid || !back).toBe(true)
    }),
  3_600_000,
)

test.concurrent(
  'two resolvers on a payout that may never have left: the fence lets one of them send',
  () =>
    schedules(async (scenario) => {
      await sentPayout(scenario, 'vanished')
      await passPauses(scenario)
      const [a, b] = scenario.sides
      await scenario.turns.run(
        () => resolve(a),
        async () => {
          await scenario.turns.step('pause', () => dueNow(scenario))
          await resolve(b)
        },
      )
      expect(sent(scenario)).toBe(1)
      expect(await readOutcomeOut(scenario)).toMatchObject({
        status: 'processing',
        attempt: 2,
        reserved: 3_000n,
      })
    }),
  3_600_000,
)

test.concurrent(
  'deposit, deposit and payout at the last franc: the balance goes out once',
  () =>
    schedules(async (scenario) => {
      await fund(scenario, 5_000n)
      scenario.environment.operator.arrive = (what) => scenario.turns.point(what)
      scenario.environment.operator.treatment = 'instant'
      const [a, b] = scenario.sides
      const pay = (services: Services) =>
        callVerb(scenario, services, (ctx) => deposit(ctx, { ...payee, amount: 3_000 }))
      const ends = await scenario.turns.run<unknown>(
        () => pay(a),
        () => pay(b),
        () => pay(b),
      )
      expect(codes(ends).toSorted()).toEqual(['INSUFFICIENT_BALANCE', 'INSUFFICIENT_BALANCE', 'done'])
      expect(sent(scenario)).toBe(1)
      expect(await readOutcomeOut(scenario)).toMatchObject({
        available: 2_000n,
        reserved: 0n,
        deposits: 1,
      })
    }),
  3_600_000,
)

test.concurrent(
  'two refunds of more than a half: one is made, and the money leaves once',
  () =>
    schedules(async (scenario) => {
      await beginPayment(scenario, 'instant')
      await fund(scenario, 5_000n)
      const id = await scenario.id()
      scenario.environment.operator.treatment = 'instant'
      const [a, b] = scenario.sides
      const refund = (services: Services) =>
        callVerb(scenario, services, (ctx) => refundTransaction(ctx, { id, amount: 3_000 }))
      const ends = await scenario.turns.run<unknown>(
        () => refund(a),
        () => refund(b),
      )
      expect(codes(ends).toSorted()).toEqual(['REFUND_TOO_LARGE', 'done'])
      expect(await readOutcomeOut(scenario)).toMatchObject({
        available: 7_000n,
        reserved: 0n,
        deposits: 1,
      })
    }),
  3_600_000,
)

test.concurrent(
  'the first answer to a deposit and a resolver: it is paid once, and nothing is sent twice',
  () =>
    schedules(async (scenario) => {
      await fund(scenario, 5_000n)
      const { operator } = scenario.environment
      operator.treatment = 'instant'
      operator.arrive = (what) => scenario.turns.point(what)
      const [a, b] = scenario.sides
      const ends = await scenario.turns.run<unknown>(
        () => callVerb(scenario, a, (ctx) => deposit(ctx, { ...payee, amount: 3_000 })),
        async () => {
          await scenario.turns.step('later', () => dueNow(scenario))
          await resolve(b)
        },
      )
      expect(codes(ends)).toEqual(['done', 'done'])
      expect(sent(scenario)).toBe(1)
      expect(await readOutcomeOut(scenario)).toMatchObject({
        available: 2_000n,
        reserved: 0n,
        attempt: 1,
        events: ['deposit_processing', 'deposit_completed'],
      })
    }),
  3_600_000,
)

test('220 refunds of one payment at once over two nodes: the whole payment goes back, once', async () => {
  const environment = await openEnvironment()
  environments.push(environment)
  const merchant = await environment.merchant()
  const paidBack = await openCollection(environment.pool, merchant, { amount: 200_000n })
  await settleMany(environment.pool, [{ id: paidBack.transactionId, to: 'success', amount: 200_000n }])
  environment.operator.treatment = 'instant'
  const nodes = [openNode(environment), openNode(environment)]
  const input = { id: paidBack.transactionId, amount: 1_000 }
  const ends = await Promise.allSettled(
    Array.from({ length: 220 }, (_, n) =>
      asMerchant(merchant.merchantId, () =>
        refundTransaction(contextOf(nodes[n % 2] as Services, merchant), input),
      ),
    ),
  )
  const others = codes(ends).filter((code) => code !== 'done')
  expect(others).toHaveLength(20)
  // The last callers find the payment reversed.
  expect(others.filter((code) => !['REFUND_TOO_LARGE', 'NOT_REFUNDABLE'].includes(code))).toEqual([])
  const { rows } = await environment.db.owner.query(
    `SELECT t.status, b.available, b.reserved FROM transaction t JOIN merchant_balance b USING (merchant_id)
     WHERE t.id = $1`,
    [paidBack.transactionId],
  )
  expect(rows).toEqual([{ status: 'reversed', available: 0n, reserved: 0n }])
})

test('afterwards no invariant is broken in any of the books', async () => {
  expect(environments.length).toBeGreaterThan(0)
  for (const environment of environments) expect(await findProblems(environment)).toEqual([])
})

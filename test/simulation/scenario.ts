import fc from 'fast-check'
import type { Services } from '../../src/context.ts'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import { resolveJob } from '../../src/requests/check-slots.ts'
import { serviceJobs } from '../../src/resources/jobs.ts'
import { checkPayment } from '../../src/resources/transactions/check.ts'
import { collect } from '../../src/resources/transactions/collect.ts'
import type { SignedInMerchant } from '../kit/merchants.ts'
import { checkProperty, runsOf } from './check-property.ts'
import { Turns } from './turns.ts'
import {
  contextOf,
  openNode,
  openEnvironment,
  PlayedOperator,
  type SimulationEnvironment,
} from './environment.ts'

/** One environment for each property that was played; the test file drops their databases. */
export const environments: SimulationEnvironment[] = []

/** One schedule: a merchant, a payment of 5,000 at the operator, and two sides that work on it. */
export interface TimedScenario {
  environment: SimulationEnvironment
  turns: Turns
  merchant: SignedInMerchant
  reference: string
  /** The sides: two nodes, or one node twice. */
  sides: readonly [Services, Services]
  name(): Promise<string>
  id(): Promise<bigint>
}

export interface FoundOutcome {
  status: string
  late: boolean
  balance: bigint
  events: string[]
  attempt: number
  transactions: number
}

let made = 0

/** Plays a scenario in many schedules. @param play makes the payment itself, or calls `beginPayment` */
export async function schedules(play: (scenario: TimedScenario) => Promise<void>): Promise<void> {
  const environment = await openEnvironment()
  environments.push(environment)
  const property = fc.asyncProperty(fc.scheduler(), fc.boolean(), async (scheduler, isOneNode) => {
    // The payments of earlier schedules must not be due in this one.
    await environment.db.owner.query(
      `UPDATE operator_request SET next_check_at = next_check_at + interval '1 year'
       WHERE next_check_at < service_now() + interval '1 year'`,
    )
    const turns = new Turns(scheduler)
    const operator = new PlayedOperator()
    const open = (side: string) =>
      openNode({
        ...environment,
        operator,
        pool: turns.pool(side, environment.pool),
        merchantPool: turns.pool(side, environment.merchantPool),
      })
    const first = open('A')
    const merchant = await environment.merchant()
    const column = async (what: string) => {
      const { rows } = await environment.db.owner.query(
        `SELECT ${what} AS value FROM transaction t JOIN operator_request r ON r.transaction_id = t.id
         WHERE t.merchant_id = $1`,
        [merchant.merchantId],
      )
      return rows[0]?.['value']
    }
    await play({
      environment: { ...environment, operator },
      turns,
      merchant,
      reference: `r-${(made += 1)}`,
      sides: [first, isOneNode ? first : open('B')],
      name: () => column('r.correlation_id') as Promise<string>,
      id: () => column('t.id') as Promise<bigint>,
    })
    if (operator.failures.length > 0) throw operator.failures[0]
  })
  await checkProperty(property, { search: 'interleavings', runs: runsOf(84) })
}

export async function readOutcome({ environment, merchant }: TimedScenario): Promise<FoundOutcome> {
  const { rows } = await environment.db.owner.query<FoundOutcome>(
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

/** Makes a payment before the schedule begins. */
export async function beginPayment(
  scenario: TimedScenario,
  treatment: PlayedOperator['treatment'] = 'normal',
): Promise<void> {
  const { operator } = scenario.environment
  operator.treatment = treatment
  await pay(scenario, openNode(scenario.environment))
  operator.treatment = 'normal'
  operator.log.length = 0
  // From here on a call to the operator waits for its turn too.
  operator.arrive = (what) => scenario.turns.point(what)
}

export function pay({ merchant, reference }: TimedScenario, services: Services) {
  const body = { amount: 5_000, customerPhone: '70000001', paymentMethod: 'OperatorA', reference }
  return asMerchant(merchant.merchantId, () => collect(contextOf(services, merchant), body as never))
}

export async function customer(scenario: TimedScenario, state: 'paid' | 'declined'): Promise<void> {
  const operation = scenario.environment.operator.operations.get(await scenario.name())
  if (operation) operation.state = state
}

/** Lets the pauses pass: the request may be asked about now, and sent again. */
export async function passPauses({ environment, merchant }: TimedScenario): Promise<void> {
  await environment.db.owner.query(
    `UPDATE operator_request SET query_after = NULL, next_check_at = service_now() - interval '1 s',
       fence_until = now() - interval '1 min' WHERE merchant_id = $1`,
    [merchant.merchantId],
  )
}

/** Ends the fence of the last send now. */
export async function endFence({ environment, merchant }: TimedScenario): Promise<void> {
  await environment.db.owner.query('UPDATE operator_request SET fence_until = now() WHERE merchant_id = $1', [
    merchant.merchantId,
  ])
}

/** Makes the request due: the last question was long ago. */
export async function dueNow({ environment, merchant }: TimedScenario): Promise<void> {
  await environment.db.owner.query(
    `UPDATE operator_request SET query_after = NULL, next_check_at = service_now() - interval '1 s'
     WHERE merchant_id = $1 AND next_check_at IS NOT NULL`,
    [merchant.merchantId],
  )
}

/** Makes the payment older by this time. */
export async function age({ environment, merchant }: TimedScenario, ms: number): Promise<void> {
  for (const table of ['transaction', 'operator_request']) {
    await environment.db.owner.query(
      `UPDATE ${table} SET created_at = created_at - $2 * interval '1 ms'
         ${table === 'transaction' ? `, expires_at = expires_at - $2 * interval '1 ms'` : ''}
       WHERE merchant_id = $1`,
      [merchant.merchantId, ms],
    )
  }
}

export async function resolve(services: Services): Promise<void> {
  await serviceJobs(services)
    .find(({ name }) => name === resolveJob('OperatorA'))
    ?.run()
  await Promise.allSettled(services.inFlight.values())
}

export const check = (scenario: TimedScenario, services: Services) =>
  checkPayment(services, scenario.reference, scenario.merchant.merchantId)

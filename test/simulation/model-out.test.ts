import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { OutCommand, RealOut } from './acts-out.ts'
import { allCommands, cancelWaiting, finish, openings, worstEnd } from './commands-out.ts'
import { fundMerchant } from '../kit/money.ts'
import { MoneyModel } from './model-out.ts'
import { nodesOf, checkProperty, runsOf } from './check-property.ts'
import { findProblems, openNode, openEnvironment, type SimulationEnvironment } from './environment.ts'
import { isSoak } from '../kit/strength.ts'

// Merchants, customers, operators, jobs and the clock act on money out in any order: after each step the
// service agrees with a model of two pages, to the franc. `RUNS=20000` tries more; a failure prints the
// command that replays it.

const nodes = nodesOf(4)
const funded = 5_000n
const environments: SimulationEnvironment[] = []
beforeAll(async () => {
  for (let node = 0; node < nodes; node += 1) environments.push(await openEnvironment())
})
afterAll(() => Promise.all(environments.map(({ db }) => db.drop())))

/** Counts the histories of money over all runs: a proof without any debt would prove nothing about debts. */
const reached = new Map<string, number>()
const record = (history: string) => reached.set(history, 1 + (reached.get(history) ?? 0))
const expectedHistories = [
  'deposit_completed',
  'deposit_completed deposit_reversed',
  'deposit_failed',
  'deposit sent again',
  'refund deposit_completed',
  'refund deposit_failed',
  'payment_received payment_reversed, by refunds',
  'payment_received payment_reversed payment_reversed',
  'payout_processing payout_completed',
  'payout_processing payout_completed payout_reversed',
  'payout sent again',
  'deposit_completed withheld_credited',
  'deposit_completed withheld_paid',
  'deposit_completed deposit_reversed withheld_credited',
  'payout_processing payout_completed withheld_credited',
  'payout_processing payout_completed withheld_paid',
  'payout_processing payout_failed',
  'payout_cancelled',
  'payout_failed',
  'shortfall',
  'recover',
]

/** Plays one run: two merchants of its own in an environment that earlier runs used. */
async function play(
  environment: SimulationEnvironment,
  commands: Iterable<OutCommand>,
  endsBadly: boolean,
): Promise<void> {
  environment.operator.isDown = false
  environment.operator.stale.clear()
  // The job asks about no payment of earlier runs.
  await environment.db.owner.query(
    'UPDATE operator_request SET next_check_at = NULL WHERE next_check_at IS NOT NULL',
  )
  const merchants = [await environment.merchant(), await environment.merchant()]
  for (const { merchantId } of merchants) await fundMerchant(environment.pool, merchantId, funded)
  const real: RealOut = {
    environment,
    services: openNode(environment),
    merchants,
    names: new Map(),
  }
  const model = new MoneyModel(funded)
  await fc.asyncModelRun(() => ({ model, real }), commands)
  await finish(model, real)
  if (endsBadly) await worstEnd(model, real)
  recordHistories(model)
  await cancelWaiting(model, real)
}

function recordHistories(model: MoneyModel): void {
  for (const { kind, events, sends, refundOf } of model.outs) {
    record(`${refundOf ? 'refund ' : ''}${events.slice(1).join(' ')}`)
    if (sends > 1) record(`${kind} sent again`)
  }
  for (const payment of model.payments) {
    const byRefunds = payment.status === 'reversed' && !model.takenBack.has(payment)
    record(`${payment.events.slice(1).join(' ')}${byRefunds ? ', by refunds' : ''}`)
  }
}

test('the service handles money out as the model does', async () => {
  const runs = runsOf(500)
  await Promise.all(
    environments.map((environment, node) =>
      checkProperty(
        fc.asyncProperty(
          fc.tuple(...openings),
          fc.commands(allCommands, { maxCommands: 12 }),
          fc.nat(2),
          (first, more, end) => play(environment, [...first, ...more], end === 0),
        ),
        { search: 'money out', runs: Math.ceil(runs / nodes), node },
      ),
    ),
  )
  for (const environment of environments) {
    const { rows } = await environment.db.owner.query<{ step: string }>(
      `SELECT step FROM ledger_entry WHERE step IN ('shortfall', 'recover')`,
    )
    for (const { step } of rows) record(step)
  }
  process.stdout.write(`money out: ${JSON.stringify(Object.fromEntries(reached))}\n`)
  // A fifth of the runs reaches the rare ones by chance only.
  const expected = isSoak && runs >= 500 && nodes > 1 ? expectedHistories : []
  const missing = expected.filter((history) => !reached.has(history))
  expect(missing).toEqual([])
  for (const environment of environments) expect(await findProblems(environment)).toEqual([])
}, 3_600_000)

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { OutCommand, RealOut } from './acts-out.ts'
import { everything, finish, openings, worstEnd } from './commands-out.ts'
import { fundMerchant } from '../kit/money.ts'
import { MoneyModel } from './model-out.ts'
import { nodesOf, prove, runsOf, seed } from './seed.ts'
import { judge, openNode, openEnvironment, type SimulationEnvironment } from './environment.ts'

// Whatever merchants, customers, operators, jobs and the clock do to money on its way out, in whatever order:
// after each step the service stands where two pages of rules stand, to the franc. `RUNS=20000` for more;
// a failure prints what replays it.

const nodes = nodesOf(4)
const funded = 5_000n
const environments: SimulationEnvironment[] = []
beforeAll(async () => {
  for (let lane = 0; lane < nodes; lane += 1) environments.push(await openEnvironment())
})
afterAll(() => Promise.all(environments.map(({ db }) => db.drop())))

/** What became of money, over all runs: a proof that never saw a debt proves nothing of it. */
const reached = new Map<string, number>()
const note = (story: string) => reached.set(story, 1 + (reached.get(story) ?? 0))
const stories = [
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
  'payout_processing payout_failed',
  'payout_cancelled',
  'payout_failed',
  'shortfall',
  'recover',
]

/** One run: two merchants of its own in a world that others used before. */
async function play(
  environment: SimulationEnvironment,
  commands: Iterable<OutCommand>,
  endsBadly: boolean,
): Promise<void> {
  environment.operator.isDown = false
  environment.operator.stale.clear()
  // Nobody asks about what earlier runs left.
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
  tellStories(model)
}

function tellStories(model: MoneyModel): void {
  for (const { kind, events, sends, refundOf } of model.outs) {
    note(`${refundOf ? 'refund ' : ''}${events.slice(1).join(' ')}`)
    if (sends > 1) note(`${kind} sent again`)
  }
  for (const payment of model.payments) {
    const byRefunds = payment.status === 'reversed' && !model.takenBack.has(payment)
    note(`${payment.events.slice(1).join(' ')}${byRefunds ? ', by refunds' : ''}`)
  }
}

test('the service does with money on its way out what the model does', async () => {
  const runs = runsOf(500)
  process.stdout.write(`money out: SEED=${seed}, ${runs} runs\n`)
  await Promise.all(
    environments.map((environment, lane) =>
      prove(
        fc.asyncProperty(
          fc.tuple(...openings),
          fc.commands(everything, { maxCommands: 12 }),
          fc.nat(2),
          (first, more, end) => play(environment, [...first, ...more], end === 0),
        ),
        { runs: Math.ceil(runs / nodes), seed: seed + lane },
      ),
    ),
  )
  for (const environment of environments) {
    const { rows } = await environment.db.owner.query<{ step: string }>(
      `SELECT step FROM ledger_entry WHERE step IN ('shortfall', 'recover')`,
    )
    for (const { step } of rows) note(step)
  }
  process.stdout.write(`money out: ${JSON.stringify(Object.fromEntries(reached))}\n`)
  const missing = runs >= 500 && nodes > 1 ? stories.filter((story) => !reached.has(story)) : []
  expect(missing).toEqual([])
  for (const environment of environments) expect(await judge(environment)).toEqual([])
}, 3_600_000)

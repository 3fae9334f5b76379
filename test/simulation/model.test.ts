import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { begin, everything, finish, type RealSystem, setting } from './commands.ts'
import { type ModelPayment, PaymentsModel } from './model.ts'
import { nodesOf, prove, runsOf, seed } from './seed.ts'
import { judge, openNode, openEnvironment, type SimulationEnvironment } from './environment.ts'

// Whatever merchants, customers, operators and the schedule do, in whatever order: after each step the
// service stands where a model of a hundred lines stands. `RUNS=20000` for more; a failure
// prints what replays it.

const nodes = nodesOf(4)
const environments: SimulationEnvironment[] = []
beforeAll(async () => {
  for (let lane = 0; lane < nodes; lane += 1) environments.push(await openEnvironment())
})
afterAll(() => Promise.all(environments.map(({ db }) => db.drop())))

/** One run: two merchants of its own in a world that others used before. */
async function play(
  environment: SimulationEnvironment,
  commands: Iterable<fc.AsyncCommand<PaymentsModel, RealSystem>>,
): Promise<void> {
  environment.operator.isDown = false
  environment.operator.stale.clear()
  // Nobody asks about what earlier runs left.
  await environment.db.owner.query(
    'UPDATE operator_request SET next_check_at = NULL WHERE next_check_at IS NOT NULL',
  )
  const merchants = [await environment.merchant(), await environment.merchant()]
  const real: RealSystem = { environment, services: openNode(environment), merchants, names: [] }
  const model = new PaymentsModel()
  await fc.asyncModelRun(() => ({ model, real }), commands)
  await finish(model, real)
  for (const payment of model.payments)
    reached.set(storyOf(payment), 1 + (reached.get(storyOf(payment)) ?? 0))
}

/** What became of payments, over all runs: a proof that never saw a late payment proves nothing of it. */
const reached = new Map<string, number>()
function storyOf({ events, late, sends }: ModelPayment): string {
  return `${events.slice(1).join(' ')}${late ? ' late' : ''}${sends > 1 ? ', sent again' : ''}`
}
const stories = [
  'payment_received',
  'payment_failed',
  'payment_expired',
  'payment_expired payment_received late',
  'payment_received payment_reversed',
  'payment_failed payment_received late',
  'payment_expired, sent again',
]

test('the service does what the model does', async () => {
  const runs = runsOf(500)
  process.stdout.write(`model: SEED=${seed}, ${runs} runs\n`)
  await Promise.all(
    environments.map((environment, lane) =>
      prove(
        fc.asyncProperty(
          begin,
          begin,
          setting,
          fc.commands(everything, { maxCommands: 20 }),
          (a, b, first, more) => play(environment, [a, b, ...first, ...more]),
        ),
        { runs: Math.ceil(runs / nodes), seed: seed + lane },
      ),
    ),
  )
  const missing = runs >= 500 && nodes > 1 ? stories.filter((story) => !reached.has(story)) : []
  process.stdout.write(`model: ${JSON.stringify(Object.fromEntries(reached))}\n`)
  expect(missing).toEqual([])
  for (const environment of environments) expect(await judge(environment)).toEqual([])
}, 3_600_000)

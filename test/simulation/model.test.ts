import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { begin, allCommands, finish, type RealSystem, startingPoints } from './commands.ts'
import { type ModelPayment, PaymentsModel } from './model.ts'
import { nodesOf, checkProperty, runsOf } from './check-property.ts'
import { findProblems, openNode, openEnvironment, type SimulationEnvironment } from './environment.ts'
import { isSoak } from '../kit/strength.ts'

// Merchants, customers, operators and the schedule act in any order: after each step the service agrees with
// a model of a hundred lines. `RUNS=20000` tries more; a failure prints the command that replays it.

const nodes = nodesOf(4)
const environments: SimulationEnvironment[] = []
beforeAll(async () => {
  for (let node = 0; node < nodes; node += 1) environments.push(await openEnvironment())
})
afterAll(() => Promise.all(environments.map(({ db }) => db.drop())))

/** Plays one run: two merchants of its own in an environment that earlier runs used. */
async function play(
  environment: SimulationEnvironment,
  commands: Iterable<fc.AsyncCommand<PaymentsModel, RealSystem>>,
): Promise<void> {
  environment.operator.isDown = false
  environment.operator.stale.clear()
  // The job asks about no payment of earlier runs.
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

/**
 * Counts the histories of payments over all runs: a proof without any late payment would prove nothing about
 * them.
 */
const reached = new Map<string, number>()
function storyOf({ events, late, sends }: ModelPayment): string {
  return `${events.slice(1).join(' ')}${late ? ' late' : ''}${sends > 1 ? ', sent again' : ''}`
}
const expectedHistories = [
  'payment_received',
  'payment_failed',
  'payment_expired',
  'payment_expired payment_received late',
  'payment_received payment_reversed',
  'payment_failed payment_received late',
  'payment_expired, sent again',
]

test('the service handles collections as the model does', async () => {
  const runs = runsOf(500)
  await Promise.all(
    environments.map((environment, node) =>
      checkProperty(
        fc.asyncProperty(
          begin,
          begin,
          startingPoints,
          fc.commands(allCommands, { maxCommands: 20 }),
          (a, b, first, more) => play(environment, [a, b, ...first, ...more]),
        ),
        { search: 'model', runs: Math.ceil(runs / nodes), node },
      ),
    ),
  )
  // A fifth of the runs reaches the rare ones by chance only.
  const expected = isSoak && runs >= 500 && nodes > 1 ? expectedHistories : []
  const missing = expected.filter((history) => !reached.has(history))
  process.stdout.write(`model: ${JSON.stringify(Object.fromEntries(reached))}\n`)
  expect(missing).toEqual([])
  for (const environment of environments) expect(await findProblems(environment)).toEqual([])
}, 3_600_000)

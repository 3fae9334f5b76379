import { randomUUID } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { startSimulator } from '../../../src/simulator/simulator.ts'
import { createOperators } from '../../../src/operators/registry.ts'
import { sandboxOperators } from '../../../src/config/operators.ts'
import type { Provider } from '../../../src/shared/providers.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { createLog } from '../../../src/telemetry/log.ts'
import { restoreCommands } from '../../../src/terminal/restore-commands.ts'
import { controlToken, startTestApp } from '../../kit/app.ts'
import { customer, hour, openFixture } from '../../kit/fixture.ts'

// A restore is accepted only after the operators of this installation gave their statements: not those that
// another shell or another sandbox happens to reach.

const fixture = await openFixture()
const { owner } = fixture.database
const { services } = fixture.app
const shop = await fixture.merchant()
await fixture.fund(shop, 1_000_000)

/** Another installation's operators, which answer as well. */
const other = await startSimulator({ port: 0, controlToken })
afterAll(() => other.close())

const { simulator } = services.config
const accept = restoreCommands['restore accept']
const orphans = restoreCommands['restore orphans']

/** The services of a shell: with the settings of the service, with none, or with those of another sandbox. */
const shells = {
  own: services,
  bare: { ...services, config: { ...services.config, simulator: null, operators: [] } },
  elsewhere: {
    ...services,
    config: { ...services.config, simulator: simulator && { ...simulator, url: other.url } },
  },
}

async function declare(): Promise<void> {
  const { pool } = services.database
  await pool.query(`SELECT begin_epoch((SELECT epoch FROM installation), 'a test')`)
  await pool.query('UPDATE database_epoch SET keys_handled_at = now() WHERE keys_handled_at IS NULL')
  await services.restores.look()
}

/** A payment that an operator made, and that the database does not have. @returns its identity */
async function payLost(url: string, provider: Provider = 'OperatorA'): Promise<string> {
  const operators = createOperators(sandboxOperators(url), {
    log: createLog('silent'),
    clock: systemClock,
    callbackUrl: fixture.url,
    callbackSecret: services.access.master.callbackSecret,
  })
  const identity = randomUUID()
  const outcome = await operators.find(provider)?.disburse(
    {
      handle: { correlationId: identity, clientRef: identity },
      amount: 3_000n,
      callbackUrl: `${fixture.url}/nowhere`,
      attempt: 1,
      payee: customer('00'),
    },
    { deadline: new Date(Date.now() + 20_000), priority: 'background', record: () => {} },
  )
  expect(['accepted', 'settled']).toContain(outcome?.kind)
  await operators.close()
  return identity
}

/** Pays a customer, so that the operator has a settled payment on record. */
async function paySettled(provider: Provider): Promise<void> {
  const { status, body } = await fixture.deposit(shop, { payment_method: provider })
  expect([status, body.data.status]).toEqual([200, 'success'])
}

async function state() {
  const { rows } = await owner.query(
    `SELECT (SELECT restored_at IS NOT NULL FROM installation) AS waits,
       EXISTS (SELECT FROM payments_out_halt WHERE lifted_at IS NULL) AS halted,
       (SELECT array_agg(correlation_id::text ORDER BY id) FROM operator_orphan) AS orphans`,
  )
  return rows[0]
}

const waiting = { waits: true, halted: true, orphans: null }

test('a restore is accepted only by the operators on record, and its orphans are found again', async () => {
  await paySettled('OperatorA')
  await paySettled('OperatorC')
  // The newest settled payments are older than the statements that the acceptance reads.
  await fixture.advance(72 * hour)
  await fixture.paid(shop)
  const lost = await payLost(fixture.simulator.url)
  await payLost(other.url)
  await declare()

  await expect(accept(shells.bare, {})).rejects.toThrow(
    /^Payments of OperatorA, OperatorC are on record, .* has no settings for them: .*--without/,
  )
  expect(await state()).toEqual(waiting)

  await expect(accept(shells.elsewhere, {})).rejects.toThrow(
    /^The statements of OperatorA, OperatorC name no payment that was settled here before the backup/,
  )
  expect(await state()).toEqual(waiting)

  const some = { ...shells.bare, config: { ...shells.bare.config, operators: ownOperators('OperatorA') } }
  await expect(accept(some, {})).rejects.toThrow(/^Payments of OperatorC are on record/)
  await expect(accept(some, { without: 'OperatorC' })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  await expect(accept(some, { without: 'OperatorX', reason: 'over' })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
  })
  expect(await state()).toEqual(waiting)

  // A person says that no operator can be asked: that is wrong, and it is on record.
  const accepted = await accept(shells.bare, {
    without: 'OperatorA, OperatorC',
    reason: 'no contract any more',
  })
  expect(accepted.answer).toMatchObject({ halted_still: null, orphans: [] })
  expect(await state()).toEqual({ waits: false, halted: false, orphans: null })
  const { rows } = await owner.query(
    `SELECT e.outcome->'leftOut' AS out, h.lifted_reason AS why
     FROM database_epoch e JOIN payments_out_halt h ON h.restored_epoch = e.epoch`,
  )
  expect(rows).toEqual([
    {
      out: { providers: ['OperatorA', 'OperatorC'], reason: 'no contract any more' },
      why: expect.stringContaining('no contract any more'),
    },
  ])

  // The list is made again, however often, and by no other operator.
  await expect(orphans(shells.elsewhere, { again: true })).rejects.toThrow(/^The statements of OperatorA/)
  const again = [await orphans(services, { again: true }), await orphans(services, { again: true })]
  for (const { answer } of again)
    expect(answer).toMatchObject({ orphans: [{ identity: lost, amount: 3_000 }] })
  expect(await state()).toEqual({ waits: false, halted: false, orphans: [lost] })
})

/** The operators of this installation with these names. */
function ownOperators(...names: Provider[]) {
  return sandboxOperators(fixture.simulator.url).filter(({ provider }) => names.includes(provider))
}

test('an operator that only a scheduled payout names must be asked too; a standing halt stays', async () => {
  const scheduled_at = new Date(services.clock.now().getTime() + 24 * hour).toISOString()
  const body = { amount: 1_000, payment_method: 'OperatorD', destination_phone: customer('00'), scheduled_at }
  expect((await fixture.rest('POST', '/payouts', { token: shop.token, body })).status).toBe(201)
  await declare()
  const some = {
    ...shells.bare,
    config: { ...shells.bare.config, operators: ownOperators('OperatorA', 'OperatorC') },
  }
  await expect(accept(some, {})).rejects.toThrow(/^Payments of OperatorD are on record/)
  // No payment of this operator was settled: a person vouches for it, and its statements are still read.
  await expect(accept(services, {})).rejects.toThrow(/^The statements of OperatorD name no payment/)
  const lost = await payLost(fixture.simulator.url, 'OperatorD')
  const byPerson = { without: 'OperatorD', reason: 'the address was checked' }
  const { answer } = await orphans(services, { again: true, ...byPerson })
  expect(JSON.stringify(answer)).toContain(lost)
  expect(await state()).toMatchObject({ waits: true, halted: true })
  await accept(services, byPerson)
  expect(await state()).toMatchObject({ waits: false, halted: false })
})

test('a shell without any operator accepts no restore, even if no payment is on record', async () => {
  const app = await startTestApp()
  const { pool } = app.app.services.database
  await pool.query(`SELECT begin_epoch(1, 'a test')`)
  await pool.query('UPDATE database_epoch SET keys_handled_at = now()')
  const { config } = app.app.services
  const bare = { ...app.app.services, config: { ...config, simulator: null, operators: [] } }
  await expect(accept(bare, {})).rejects.toThrow(/^This command has no settings for any operator/)
  await expect(orphans(bare, { again: true })).rejects.toThrow(/^This command has no settings for any/)
  const { rowCount } = await pool.query('SELECT FROM payments_out_halt WHERE lifted_at IS NULL')
  expect(rowCount).toBe(1)
  await app.close()
})

test('without a restore no list of orphans is made again', async () => {
  const app = await startTestApp()
  await expect(orphans(app.app.services, { again: true })).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  await app.close()
})

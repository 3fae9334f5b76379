import { expect, onTestFinished, test } from 'vitest'
import { providers } from '../../src/shared/providers.ts'
import { mostOpen, operatorCalls } from '../support/operator-calls.ts'
import { bulkOn, row } from './bulk-ground.ts'
import { eventually } from './eventually.ts'
import { customer, openStage } from './stage.ts'

// Counted by the operators themselves: which calls were open at the same moment.

const stage = await openStage()
const { shop, draft, process, ended } = bulkOn(stage)
const { owner } = stage.database

const people = (count: number, operators: readonly (typeof providers)[number][] = providers) =>
  Array.from({ length: count }, (_, n) => {
    const payment_method = operators[n % operators.length]
    return row('00', { account: customer('00'), ...(payment_method && { payment_method }) })
  })

async function fault(wish: object): Promise<void> {
  const control = (method: string, body?: object) =>
    fetch(`${stage.simulator.url}/_sim/faults`, {
      method,
      headers: { 'x-control-token': stage.controlToken, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
  expect((await control('POST', wish)).status).toBe(201)
  onTestFinished(async () => void (await control('DELETE')))
}

/** Every answer of `operator`, or of all, takes so long. */
const slow = (ms: number, operator?: string) =>
  fault({ match: { op: 'disburse', ...(operator && { operator }) }, effect: 'delay', params: { ms } })

/** The calls for the recipients of batches, each with its batch. */
async function callsOf(ids: readonly number[]) {
  const { rows } = await owner.query<{ name: string; id: number }>(
    `SELECT q.correlation_id AS name, r.batch_id AS id
     FROM operator_request q JOIN batch_recipient r ON r.id = q.recipient_id WHERE r.batch_id = ANY ($1)`,
    [ids],
  )
  const batchOf = new Map(rows.map(({ name, id }) => [name, id]))
  const calls = await operatorCalls(stage.simulator.url, stage.controlToken, 'disburse')
  return calls.flatMap((call) => {
    const batch = batchOf.get(call.clientReference)
    return batch === undefined ? [] : [{ ...call, batch }]
  })
}

async function mostOfBatches(ids: readonly number[]): Promise<(number | undefined)[]> {
  const most = mostOpen(await callsOf(ids), ({ batch }) => batch)
  return ids.map((id) => most.get(id))
}

test.each(['one service', 'two services'] as const)(
  'with %s, of one batch 8 are at its operators at most, and 8 are',
  async (how) => {
    await slow(40)
    if (how === 'two services') await stage.sibling()
    const merchant = await shop()
    const id = await draft(merchant, people(80))
    await process(merchant, id)
    await eventually(async () => expect(await callsOf([id])).toHaveLength(80))
    expect(new Set((await callsOf([id])).map(({ clientReference }) => clientReference)).size).toBe(80)
    expect(await mostOfBatches([id])).toEqual([8])
  },
)

test('of one operator 32 are asked at once at most, of many batches of several merchants', async () => {
  await slow(150, 'OperatorD')
  const merchants = await Promise.all([shop(), shop(), shop()])
  const made = await Promise.all(
    merchants.flatMap((merchant) =>
      [1, 2].map(async () => ({ merchant, id: await draft(merchant, people(24, ['OperatorD'])) })),
    ),
  )
  await Promise.all(made.map(({ merchant, id }) => process(merchant, id)))
  await Promise.all(made.map(({ merchant, id }) => ended(merchant, id)))
  const ids = made.map(({ id }) => id)
  const all = await callsOf(ids)
  expect(mostOpen(all, ({ operator }) => operator)).toEqual(new Map([['OperatorD', 32]]))
  for (const most of await mostOfBatches(ids)) expect(most).toBeLessThanOrEqual(8)
  expect(all).toHaveLength(6 * 24)
})

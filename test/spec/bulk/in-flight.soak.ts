import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { providers } from '../../../src/shared/providers.ts'
import { mostOpen, operatorCalls } from '../../kit/operator-calls.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, minute, openFixture } from '../../kit/fixture.ts'

// Counted by the operators themselves: the calls that were open at the same moment.

const fixture = await openFixture()
const { shop, draft, process, ended } = bulkOn(fixture)
const { owner } = fixture.database

const people = (count: number, operators: readonly (typeof providers)[number][] = providers) =>
  Array.from({ length: count }, (_, n) => {
    const payment_method = operators[n % operators.length]
    return row('00', { account: customer('00'), ...(payment_method && { payment_method }) })
  })

async function faults(method: 'POST' | 'DELETE', fault?: object): Promise<void> {
  const answer = await fetch(`${fixture.simulator.url}/_sim/faults`, {
    method,
    headers: { 'x-control-token': fixture.controlToken, 'content-type': 'application/json' },
    ...(fault && { body: JSON.stringify(fault) }),
  })
  expect(answer.ok).toBe(true)
}
afterEach(() => faults('DELETE'))

/** Delays every answer of `operator`, or of all operators. */
const slow = (ms: number, operator?: string) =>
  faults('POST', {
    match: { op: 'disburse', ...(operator && { operator }) },
    effect: 'delay',
    params: { ms },
  })

/** The calls for the recipients of batches, each with its batch. */
async function callsOf(ids: readonly number[]) {
  const { rows } = await owner.query<{ name: string; id: number }>(
    `SELECT q.correlation_id AS name, r.batch_id AS id
     FROM operator_request q JOIN batch_recipient r ON r.id = q.recipient_id WHERE r.batch_id = ANY ($1)`,
    [ids],
  )
  const batchOf = new Map(rows.map(({ name, id }) => [name, id]))
  const calls = await operatorCalls(fixture.simulator.url, fixture.controlToken, 'disburse')
  return calls.flatMap((call) => {
    const batch = batchOf.get(call.clientReference)
    return batch === undefined ? [] : [{ ...call, batch }]
  })
}

async function mostOfBatches(ids: readonly number[]): Promise<(number | undefined)[]> {
  const most = mostOpen(await callsOf(ids), ({ batch }) => batch)
  return ids.map((id) => most.get(id))
}

let second: Promise<string> | undefined
/** One more service, counted from its first call on. */
const sibling = () => (second ??= fixture.sibling())

async function openNow(id: number): Promise<number> {
  return (await callsOf([id])).filter((call) => call.ended === null).length
}

test('one operator gets 32 calls at once at most, for many batches of several merchants', async () => {
  // Long enough for a busy machine to fill all slots.
  await slow(600, 'OperatorD')
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
  const most = mostOpen(all, ({ operator }) => operator).get('OperatorD')
  // More than three batches may have; slots are filled while others become free.
  expect(most).toBeGreaterThan(24)
  expect(most).toBeLessThanOrEqual(32)
  for (const each of await mostOfBatches(ids)) expect(each).toBeLessThanOrEqual(8)
  expect(all).toHaveLength(6 * 24)
})

/** Ends the session that holds the sending lease; its process goes on, with all its open calls. */
async function loseTheLease(): Promise<void> {
  const lane = `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 72707376 AND objid = 0
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND granted`
  const { rowCount } = await owner.query(`SELECT pg_terminate_backend(pid) FROM (${lane}) AS lane`)
  expect(rowCount).toBe(1)
}

test.each(['the same service', 'another service'] as const)(
  "8 of a batch stay 8 when the sender's session is lost, and %s goes on",
  async (how) => {
    // One silent operator gets five calls at most: the two of them share the eight. Neither calls back.
    await slow(minute, 'OperatorC')
    await slow(minute, 'OperatorD')
    const [merchant, other] = [await shop(), await shop()]
    const id = await draft(merchant, people(24, ['OperatorC', 'OperatorD']))
    await process(merchant, id)
    await eventually(async () => expect(await openNow(id)).toBe(8))
    if (how === 'another service') {
      await sibling()
      const during = vi.spyOn(fixture.app.services.leases, 'during').mockResolvedValue(undefined)
      onTestFinished(() => during.mockRestore())
    }
    await loseTheLease()
    // The process that sends this batch has counted the other one as well.
    const quick = await draft(other, people(24, ['OperatorB']))
    await process(other, quick)
    await ended(other, quick)
    expect(await openNow(id)).toBe(8)
    await faults('DELETE')
    await fixture.advance(minute)
    await eventually(async () => expect(await callsOf([id])).toHaveLength(24))
    expect(await mostOfBatches([id])).toEqual([8])
  },
)

test.each(['one service', 'two services'] as const)(
  'with %s, one batch has 8 calls open at most, and does reach 8',
  async (how) => {
    await slow(40)
    if (how === 'two services') await sibling()
    const merchant = await shop()
    const id = await draft(merchant, people(80))
    await process(merchant, id)
    await eventually(async () => expect(await callsOf([id])).toHaveLength(80))
    expect(new Set((await callsOf([id])).map(({ clientReference }) => clientReference)).size).toBe(80)
    expect(await mostOfBatches([id])).toEqual([8])
  },
)

test('a payment that is sent again counts among the eight of its batch', async () => {
  // The operator answers when the clock is moved: by then a busy machine has filled all slots too.
  await slow(5_000)
  const merchant = await shop()
  const refusedOnce = people(48).map((each) => ({ ...each, account: customer('25', '01') }))
  const id = await draft(merchant, refusedOnce)
  await process(merchant, id)
  await eventually(async () => expect(await openNow(id)).toBe(8))
  await eventually(async () => {
    await owner.query(
      `UPDATE operator_request SET fence_until = now() - interval '1 ms', query_after = NULL
       WHERE state <> 'sending'`,
    )
    await fixture.advance(5_000)
    expect(await callsOf([id])).toHaveLength(96)
  })
  expect(await mostOfBatches([id])).toEqual([8])
})

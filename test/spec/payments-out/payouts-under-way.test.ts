import { expect, test } from 'vitest'
import { openSandboxClock } from '../../../src/database/sandbox-clock.ts'
import { sendDuePayouts } from '../../../src/resources/payouts/send.ts'
import { type Provider, providers } from '../../../src/shared/providers.ts'
import { balanceOf, fundedMerchant } from '../../kit/money.ts'
import {
  cancelPayout,
  createPayouts,
  entriesOf,
  openPayout,
  type PayoutItem,
  payoutItem,
} from '../../kit/money-out.ts'
import { controlToken } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, hour, minute, openFixture, perOperator, second } from '../../kit/fixture.ts'

// Payouts after their creation: the engine begins them, operators of the simulator pay.

const fixture = await openFixture({ OPERATOR_B_BREAKER_OPEN_MS: '500' })
const { pool } = fixture.database.database
const shop = await fundedMerchant(pool, 10_000_000n)
const day = 24 * hour

const payout = (scenario: string, more: Partial<PayoutItem> = {}, parameter?: string) =>
  openPayout(pool, shop, { phone: customer(scenario, parameter), ...more })
const inService = (ms: number) => new Date(fixture.app.services.clock.now().getTime() + ms)

async function stateOf(id: bigint): Promise<Record<string, unknown>> {
  const { rows } = await fixture.database.owner.query<Record<string, unknown>>(
    `SELECT status, failure_reason AS reason, settled_amount::int AS settled, reversed_at IS NOT NULL AS back
     FROM payout WHERE id = $1`,
    [id],
  )
  return rows[0] ?? {}
}

const becomes = (id: bigint, what: object) =>
  eventually(async () => expect(await stateOf(id)).toMatchObject(what))

/** The number and amount of executions of this payout, by the operator's own book. */
async function paidOut(id: bigint): Promise<[string, number, string][]> {
  const { rows } = await fixture.database.owner.query<{ name: string }>(
    'SELECT correlation_id AS name FROM operator_request WHERE payout_id = $1',
    [id],
  )
  if (rows.length === 0) return []
  const answer = await fetch(`${fixture.simulator.url}/_sim/invariants?clientRef=${rows[0]?.name}`, {
    headers: { 'x-control-token': controlToken },
  })
  const { executions } = (await answer.json()) as {
    executions: { kind: string; count: number; amount: string }[]
  }
  return executions.map(({ kind, count, amount }) => [kind, count, amount])
}

async function eventTypesOf(id: bigint): Promise<string[]> {
  const { rows } = await fixture.database.owner.query<{ type: string }>(
    `SELECT type FROM event WHERE data->>'payout_id' = $1 ORDER BY id`,
    [String(id)],
  )
  return rows.map(({ type }) => type)
}

/** The number of payouts not sent yet, or without an answer: not even the end of their connection. */
async function notAnswered(ids: readonly bigint[]): Promise<number> {
  const { rows } = await fixture.database.owner.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM payout p LEFT JOIN operator_request r ON r.payout_id = p.id
     WHERE p.id = ANY ($1) AND coalesce(r.state, 'sending') = 'sending'`,
    [ids],
  )
  return rows[0]?.n ?? -1
}

/** Ends the half minute in which an earlier send may still arrive. */
async function letFencesFall(): Promise<void> {
  await fixture.database.owner.query(
    `UPDATE operator_request SET fence_until = now() - interval '1 s', query_after = NULL
     WHERE payout_id IS NOT NULL AND state <> 'settled'`,
  )
}

/** Queries and sends again, as time goes by, until every payout has this status. */
async function letTimePass(ids: readonly bigint[], status: string, stepMs = 5 * second): Promise<void> {
  await eventually(async () => {
    await letFencesFall()
    await fixture.advance(stepMs)
    await new Promise((resolve) => setTimeout(resolve, 150))
    const states = await Promise.all(ids.map(stateOf))
    expect(states.map((state) => state['status'])).toEqual(ids.map(() => status))
  })
}

const paidOnce = [['disburse', 1, '1000']]
const once = ['payout_pending', 'payout_processing', 'payout_completed']

/** Answered after longer than any caller waits: 10 s and more, so it is started before the tests. */
const slow = await payout('21', {}, '13')

test('a new payout leaves at once, by each operator, and is completed', async () => {
  const ids = await perOperator((provider) => payout('00', { provider }))
  await letTimePass(Object.values(ids), 'completed')
  for (const [provider, id] of Object.entries(ids)) {
    expect(await stateOf(id)).toMatchObject({ settled: 1_000 })
    expect(await paidOut(id)).toEqual(paidOnce)
    expect(await eventTypesOf(id)).toEqual(once)
    const clearing = `clearing_operator_${provider.slice(-1).toLowerCase()}`
    expect(await entriesOf(pool, `payout:${id}`)).toEqual([
      'reserve available > reserved 1000',
      `post reserved > ${clearing} 1000`,
    ])
  }
})

test('a refused payout is failed, and its money is free again', async () => {
  const ids = await perOperator((provider) => payout('05', { provider }))
  for (const id of Object.values(ids)) {
    await becomes(id, { status: 'failed', reason: 'PAYEE_NOT_ALLOWED' })
    expect(await entriesOf(pool, `payout:${id}`)).toEqual([
      'reserve available > reserved 1000',
      'void reserved > available 1000',
    ])
  }
})

test('a scheduled payout is sent at its time: not before, and once', async () => {
  const id = await payout('00', { scheduledAt: inService(2 * hour) })
  await fixture.advance(hour)
  // A sender that looks now finds nothing.
  await sendDuePayouts(fixture.app.services, 'OperatorA')
  expect(await stateOf(id)).toMatchObject({ status: 'pending' })
  expect(await entriesOf(pool, `payout:${id}`)).toEqual([])
  await fixture.advance(hour + second)
  await becomes(id, { status: 'completed' })
  expect(await paidOut(id)).toEqual(paidOnce)
  expect(await eventTypesOf(id)).toEqual(once)
})

test('a payout that is not covered when it is due fails, and never leaves', async () => {
  const poor = await fundedMerchant(pool, 1_500n)
  const ids = await Promise.all(
    [1_000n, 1_000n].map((amount) =>
      openPayout(pool, poor, { amount, phone: customer('00'), scheduledAt: inService(hour) }),
    ),
  )
  await fixture.advance(hour + second)
  const ends = await eventually(async () => {
    const states = await Promise.all(ids.map(stateOf))
    expect(new Set(states.map(({ status }) => status))).toEqual(new Set(['completed', 'failed']))
    return states
  })
  expect(ends.find(({ status }) => status === 'failed')).toMatchObject({ reason: 'INSUFFICIENT_BALANCE' })
  expect(await balanceOf(pool, poor.merchantId)).toEqual({ available: 500n, reserved: 0n })
})

test('cancelling and sending at the same moment: each payout is one or the other', async () => {
  const at = inService(hour)
  const made = await createPayouts(
    pool,
    Array.from({ length: 24 }, () => payoutItem(shop, { phone: customer('00'), scheduledAt: at })),
  )
  const ids = made.map(({ payoutId }) => payoutId ?? 0n)
  await fixture.advance(hour - 5)
  await Promise.all([
    fixture.advance(second),
    sendDuePayouts(fixture.app.services, 'OperatorA'),
    ...ids.map((id) => cancelPayout(pool, shop, id)),
  ])
  await eventually(async () => {
    const states = await Promise.all(ids.map(stateOf))
    expect(states.filter(({ status }) => status !== 'completed' && status !== 'cancelled')).toEqual([])
  })
  for (const id of ids) {
    const { status } = await stateOf(id)
    expect(await paidOut(id)).toEqual(status === 'completed' ? paidOnce : [])
  }
})

test('while an operator is known to be down payouts wait, and can be cancelled; then they go', async () => {
  await fixture.outage('OperatorB', '5xx')
  const begun = await Promise.all(Array.from({ length: 6 }, () => payout('00', { provider: 'OperatorB' })))
  await eventually(async () =>
    expect(fixture.app.services.operators.find('OperatorB')?.availability('disburse')).toBe('down'),
  )
  // A statement that was running when the operator was found to be down may still begin one.
  const tryOne = async () => {
    const one = await payout('00', { provider: 'OperatorB' })
    await sendDuePayouts(fixture.app.services, 'OperatorB')
    return one
  }
  let waits = await tryOne()
  for (let tries = 0; tries < 3 && (await stateOf(waits)).status !== 'pending'; tries += 1) {
    begun.push(waits)
    waits = await tryOne()
  }
  const goes = await payout('00', { provider: 'OperatorB' })
  await sendDuePayouts(fixture.app.services, 'OperatorB')
  expect(await stateOf(waits)).toMatchObject({ status: 'pending' })
  expect(await cancelPayout(pool, shop, waits)).toEqual({ moved: true, status: 'cancelled' })
  await fixture.outage('OperatorB', 'none')
  await becomes(goes, { status: 'completed' })
  await letTimePass(begun, 'completed')
  for (const id of [...begun, goes]) expect(await paidOut(id)).toEqual(paidOnce)
})

test('the answer is lost, wrong or late: paid out once, as without the fault', async () => {
  const all: bigint[] = []
  for (const code of ['20', '22', '23', '24', '25', '26']) {
    // A success between them, so that no circuit opens.
    for (const each of ['00', code]) {
      all.push(...Object.values(await perOperator((provider) => payout(each, { provider }))))
      await eventually(async () => expect(await notAnswered(all)).toBe(0))
    }
  }
  await letTimePass(all, 'completed')
  for (const id of all) {
    expect(await paidOut(id)).toEqual(paidOnce)
    expect(await eventTypesOf(id)).toEqual(once)
  }
})

test('41 pays less: the paid amount is gone, the rest is withheld; 40 is given back', async () => {
  const less = await payout('41', { amount: 2_000n })
  await becomes(less, { status: 'completed', settled: 1_999 })
  expect((await entriesOf(pool, `payout:${less}`)).slice(1)).toEqual([
    'post reserved > clearing_operator_a 1999',
    'withhold reserved > unallocated 1',
  ])
  const given = await payout('40', { provider: 'OperatorC' })
  await letTimePass([given], 'completed')
  await fixture.advance(2 * minute)
  await becomes(given, { status: 'completed', back: true })
  expect((await entriesOf(pool, `payout:${given}`)).at(-1)).toBe(
    'reverse clearing_operator_c > available 1000',
  )
})

test('21 answers later than any caller waits: queried, and paid out once', async () => {
  await letTimePass([slow], 'completed')
  expect(await paidOut(slow)).toEqual(paidOnce)
})

test('27 is never reachable: tried for a day, then failed, and nothing left', async () => {
  const ids = Object.values(await perOperator((provider) => payout('27', { provider })))
  await eventually(async () => {
    for (const id of ids) expect(await stateOf(id)).toMatchObject({ status: 'processing' })
  })
  await fixture.advance(day)
  await letTimePass(ids, 'failed', minute)
  for (const id of ids) {
    expect(await stateOf(id)).toMatchObject({ reason: 'OPERATOR_UNAVAILABLE' })
    expect(await paidOut(id)).toEqual([])
  }
})

test('51, our float is empty: tried for a day, then failed, and the money is free again', async () => {
  const poor = await fixture.merchant()
  await fixture.fund(poor, 20_000)
  const { token } = poor
  const money = async () => (await fixture.rest('GET', '/balance', { token })).body.data
  const ids = await perOperator(async (provider) => {
    const order = { payment_method: provider, destination_phone: customer('51'), amount: 5_000 }
    const { status, body } = await fixture.rest('POST', '/payouts', { token, body: order })
    expect(status).toBe(201)
    return BigInt(body.data.id)
  })
  const all = Object.values(ids)
  await eventually(async () => {
    for (const id of all) expect(await stateOf(id)).toMatchObject({ status: 'processing' })
  })
  await fixture.advance(23 * hour)
  expect(await money()).toMatchObject({ available: 0, reserved: 20_000 })
  await fixture.advance(hour)
  await letTimePass(all, 'failed', minute)
  expect(await money()).toMatchObject({ available: 20_000, reserved: 0 })
  for (const id of all) {
    expect(await stateOf(id)).toMatchObject({ reason: 'FLOAT_INSUFFICIENT' })
    expect(await paidOut(id)).toEqual([])
    expect(await eventTypesOf(id)).toEqual(['payout_pending', 'payout_processing', 'payout_failed'])
  }
})

test('a payout that became due while no service ran goes with the next start', async () => {
  const ids = await perOperator((provider: Provider) =>
    payout('00', { provider, scheduledAt: inService(day) }),
  )
  await fixture.app.close()
  await (await openSandboxClock(fixture.database.owner)).advance(2 * day)
  for (const id of Object.values(ids)) expect(await stateOf(id)).toMatchObject({ status: 'pending' })
  await fixture.sibling()
  await eventually(async () => expect(await notAnswered(Object.values(ids))).toBe(0))
  await (await openSandboxClock(fixture.database.owner)).advance(4 * second)
  for (const provider of providers) {
    const id = ids[provider] ?? 0n
    await becomes(id, { status: 'completed' })
    expect(await paidOut(id)).toEqual(paidOnce)
  }
  const { reserved } = await balanceOf(fixture.database.owner, shop.merchantId)
  expect(reserved).toBe(0n)
})

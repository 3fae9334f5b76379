import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { operatorIdentity, type IdentityKind } from '../../../src/identity/secrets/operator-identities.ts'
import type { Provider } from '../../../src/shared/providers.ts'
import { controlToken, startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'
import { openLink, payBy } from '../../kit/money-links.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer } from '../../kit/fixture.ts'
import { fundMerchant } from '../../kit/money.ts'
import { operatorCalls } from '../../kit/operator-calls.ts'

// After a restore, a merchant uses the reference of a lost payment for another payment. The operator knows
// the lost payment under the same identity, and would answer with it.

let app: TestApp
let shop: TestMerchant
beforeAll(async () => {
  app = await startTestApp()
  shop = await app.merchant()
  await fundMerchant(app.database.database.pool, shop.merchantId, 1_000_000n)
})
afterAll(() => app.close())

interface Facts {
  provider: Provider
  amount: number
  phone: string
}
const lost: Facts = { provider: 'OperatorA', amount: 2_000, phone: customer('00') }

/** Records the transfer that the operator made under an identity before the restore. */
async function recordOrphan(identity: string, kind: 'collect' | 'disburse', facts: Facts = lost) {
  const { provider, amount, phone } = facts
  const { rows } = await app.database.owner.query<{ ref: string }>(
    `INSERT INTO operator_orphan (provider, kind, correlation_id, operator_ref, amount, counterparty,
       posted_at, statement_day)
     VALUES ($1, $2, $3::uuid, 'ref-' || $3::text, $4, $5, '2026-11-21T08:00:00Z', '2026-11-21')
     RETURNING operator_ref AS ref`,
    [provider, kind, identity, amount, phone],
  )
  return rows[0]?.ref ?? ''
}

const tomorrow = () => new Date(app.app.services.clock.now().getTime() + 86_400_000).toISOString()

/** The doors by which a merchant asks for a payment under a reference. */
const doors = {
  pay: { path: '/pay', identity: 'collect', phone: 'customer_phone', more: () => ({}) },
  deposit: { path: '/deposit', identity: 'disburse', phone: 'customer_phone', more: () => ({}) },
  payout: { path: '/payouts', identity: 'payout', phone: 'destination_phone', more: () => ({}) },
  'scheduled payout': {
    path: '/payouts',
    identity: 'payout',
    phone: 'destination_phone',
    more: () => ({ scheduled_at: tomorrow() }),
  },
} as const satisfies Record<string, { path: string; identity: IdentityKind; phone: string; more(): object }>
type Door = keyof typeof doors

function ask(door: Door, reference: string, { provider, amount, phone }: Facts) {
  const { path, phone: phoneField, more } = doors[door]
  const body = { reference, payment_method: provider, amount, [phoneField]: phone, ...more() }
  return app.rest('POST', path, { token: shop.token, body })
}

function identityOf(door: Door, name: string): string {
  const { merchantId } = shop
  const { master } = app.app.services.access
  return operatorIdentity(master, { merchantId, kind: doors[door].identity, by: 'reference', name })
}

const kindOf = (door: Door) => (door === 'pay' ? 'collect' : 'disburse')

/** The numbers of rows that a payment writes, and of calls that would move money. */
async function traces(): Promise<unknown> {
  const { rows } = await app.database.owner.query(
    `SELECT (SELECT count(*) FROM transaction) AS transactions, (SELECT count(*) FROM payout) AS payouts,
       (SELECT count(*) FROM batch) AS batches, (SELECT count(*) FROM batch_recipient) AS recipients,
       (SELECT count(*) FROM operator_request) AS requests, (SELECT count(*) FROM event) AS events,
       (SELECT count(*) FROM ledger_entry) AS entries, (SELECT count(*) FROM audit_entry) AS audited`,
  )
  const calls = await operatorCalls(app.simulator.url, controlToken)
  return [rows, calls.filter(({ op }) => op === 'collect' || op === 'disburse').length]
}

let names = 0
const newName = () => `order-${(names += 1)}`

const others: Record<string, Partial<Facts>> = {
  'another amount': { amount: 3_000 },
  'another number': { phone: customer('00') },
  'another operator': { provider: 'OperatorC' },
}
const doorNames = Object.keys(doors) as Door[]
const cases = doorNames.flatMap((door) => Object.keys(others).map((other) => ({ door, other })))

test.each(cases)('409 $door with $other than the lost payment', async ({ door, other }) => {
  const name = newName()
  const ref = await recordOrphan(identityOf(door, name), kindOf(door))
  const before = await traces()
  const { status, body } = await ask(door, name, { ...lost, ...others[other] })
  expect([status, body.success]).toEqual([409, false])
  for (const known of [
    '2,000',
    `+223******${lost.phone.slice(-2)}`,
    '2026-11-21T08:00:00.000Z',
    'OperatorA',
    ref,
  ])
    expect(body.message).toContain(known)
  expect(body.message).not.toContain(lost.phone)
  expect(await traces()).toEqual(before)
})

// `restore-identities.test.ts` has deposits, whose caller waits for the answer of the operator.
test.each(doorNames.filter((door) => door !== 'deposit'))(
  '%s with the facts of the lost payment is asked about, not sent',
  async (door) => {
    const name = newName()
    await recordOrphan(identityOf(door, name), kindOf(door))
    const [, calls] = (await traces()) as [unknown, number]
    const { status } = await ask(door, name, lost)
    expect(status).toBeLessThan(300)
    expect(((await traces()) as [unknown, number])[1]).toBe(calls)
  },
)

test('409 a refund under the reference of another lost deposit', async () => {
  const paid = await ask('pay', newName(), lost)
  const id = paid.body.data.transaction_id as number
  await eventually(async () => {
    const { body } = await app.rest('GET', `/transactions/${id}`, { token: shop.token })
    expect(body.data.status).toBe('success')
  })
  const name = newName()
  await recordOrphan(identityOf('deposit', name), 'disburse', { ...lost, amount: 1_500 })
  const before = await traces()
  const document = `mutation ($id: ID!, $name: String) { refundTransaction(id: $id, reference: $name) {
    __typename ... on Refusal { code message } } }`
  const { body } = await app.graphql(document, { id: String(id), name }, shop.token)
  expect(JSON.stringify(body)).toContain('DUPLICATE_REFERENCE')
  expect(JSON.stringify(body)).toContain('1,500')
  expect(await traces()).toEqual(before)
})

describe('a batch', () => {
  const second = customer('00')
  const create = (key: string) =>
    app.rest('POST', '/bulk/batches', {
      token: shop.token,
      headers: { 'Idempotency-Key': key },
      body: {
        recipients: [
          { name: 'Awa', account: lost.phone, amount: lost.amount, payment_method: lost.provider },
          { name: 'Moussa', account: second, amount: 1_000, payment_method: 'OperatorC' },
        ],
      },
    })

  async function draft(key: string): Promise<{ id: number; identity: string }> {
    const { status, body } = await create(key)
    expect(status).toBe(201)
    const { rows } = await app.database.owner.query<{ identity: string }>(
      'SELECT correlation_id AS identity FROM batch_recipient WHERE batch_id = $1 ORDER BY id',
      [body.data.id],
    )
    return { id: body.data.id as number, identity: rows[0]?.identity ?? '' }
  }

  test('409 made again by its key, where the operator made another payment of one recipient', async () => {
    const { identity, id } = await draft('again')
    // As in a backup from before the request: it lacks the batch and the key.
    await app.database.owner.query(
      `SET session_replication_role = replica; DELETE FROM batch_recipient WHERE batch_id = ${id};
       DELETE FROM batch WHERE id = ${id}; DELETE FROM idempotency_key;
       SET session_replication_role = origin`,
    )
    await recordOrphan(identity, 'disburse', { ...lost, provider: 'OperatorC' })
    const before = await traces()
    const { status, body } = await create('again')
    expect([status, body.message]).toEqual([409, expect.stringContaining('OperatorC')])
    expect(body.message).toContain(`Recipient +223******${lost.phone.slice(-2)}: `)
    expect(await traces()).toEqual(before)
  })

  test('409 recipients that are added, and the draft stays as it was', async () => {
    const { id } = await draft('grows')
    const add = () =>
      app.rest('POST', `/bulk/batches/${id}/recipients`, {
        token: shop.token,
        headers: { 'Idempotency-Key': 'more' },
        body: {
          recipients: [{ name: 'Awa', account: lost.phone, amount: 1_000, payment_method: 'OperatorA' }],
        },
      })
    expect((await add()).status).toBeLessThan(300)
    const { rows } = await app.database.owner.query<{ id: string; identity: string }>(
      `SELECT id, correlation_id AS identity FROM batch_recipient WHERE batch_id = $1
       ORDER BY id DESC LIMIT 1`,
      [id],
    )
    // As in a backup from before the addition.
    await app.database.owner.query(
      `SET session_replication_role = replica; DELETE FROM batch_recipient WHERE id = ${rows[0]?.id};
       UPDATE batch SET added_for = '{}', recipient_count = 2 WHERE id = ${id}; DELETE FROM idempotency_key;
       SET session_replication_role = origin`,
    )
    await recordOrphan(rows[0]?.identity ?? '', 'disburse')
    const before = await traces()
    expect(await add()).toMatchObject({ status: 409, body: { message: expect.stringContaining('2,000') } })
    expect(await traces()).toEqual(before)
  })

  test('409 processed, where the orphan became known after the draft was made', async () => {
    const { id, identity } = await draft('processed')
    await recordOrphan(identity, 'disburse', { ...lost, amount: 9_000 })
    const before = await traces()
    const process = () => app.rest('POST', `/bulk/batches/${id}/process`, { token: shop.token })
    expect(await process()).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining('9,000') },
    })
    expect(await traces()).toEqual(before)
    const stranger = await app.merchant()
    const { status } = await app.rest('POST', `/bulk/batches/${id}/process`, { token: stranger.token })
    expect(status).toBe(404)
  })
})

test('a form of a payment link with another amount than its lost payment is not recorded', async () => {
  const { pool } = app.app.services.database
  const link = await openLink(app.database.owner, shop.merchantId, {})
  const [identity, before] = [randomUUID(), await traces()]
  await recordOrphan(identity, 'collect', { ...lost, amount: 4_000 })
  expect(await payBy(pool, link, 5_000, { identity })).toMatchObject({ outcome: 'differs', id: 0n })
  expect(await traces()).toEqual(before)
  expect(await payBy(pool, link, 5_000)).toMatchObject({ outcome: 'made' })
})

test('a scheduled payout is halted while a restore waits, when orphans are not known', async () => {
  const { owner } = app.database
  await owner.query('UPDATE installation SET restored_at = now()')
  expect(await ask('scheduled payout', newName(), lost)).toMatchObject({ status: 503 })
  await owner.query('UPDATE installation SET restored_at = NULL')
  expect(await ask('scheduled payout', newName(), lost)).toMatchObject({ status: 201 })
})

test.each([
  ['the same number', lost.phone, true],
  ['without the country', lost.phone.slice(4), true],
  ['with 00 and spaces', `00223 ${lost.phone.slice(4)}`, true],
  ['hidden digits', '+223******01', true],
  ['no number', null, true],
  ['no digit', '-', true],
  ['another number', '+22376000001', false],
  ['a longer number', `${lost.phone}1`, false],
])('the number that an operator states: %s', async (_name, said, same) => {
  const { rows } = await app.database.owner.query<{ same: boolean }>(
    `SELECT is_orphan_of(o, 'disburse', 'OperatorA', 2000, $2) AS same
     FROM (SELECT (jsonb_populate_record(NULL::operator_orphan, jsonb_build_object('provider', 'OperatorA',
       'kind', 'disburse', 'amount', 2000, 'counterparty', $1::text))).*) AS f,
     LATERAL jsonb_populate_record(NULL::operator_orphan, to_jsonb(f)) AS o`,
    [said, lost.phone],
  )
  expect(rows).toEqual([{ same }])
})

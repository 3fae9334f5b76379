import { expect, test } from 'vitest'
import { acceptRestore } from '../../../src/resources/recovery/accept.ts'
import { listOrphans } from '../../../src/resources/recovery/orphans.ts'
import { limits } from '../../../src/shared/limits.ts'
import { makeMember, type TestMember } from '../../kit/members.ts'
import { approvalsOn } from '../../kit/approvals.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, minute, openFixture } from '../../kit/fixture.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { useBounds } from '../../kit/use-bounds.ts'

// A backup has payments that wait for approval; they were approved and paid after it, and their operator
// knows that.

// A request that could not be sent is claimed again soon.
useBounds(limits, { operatorFenceMs: 300 })
const fixture = await openFixture()
const { owner } = fixture.database
const { services } = fixture.app
const { ask } = approvalsOn(fixture)

interface Shop {
  shop: TestMerchant
  maker: TestMember
  other: TestMember
}

async function openShop(): Promise<Shop> {
  const shop = await fixture.merchant()
  await fixture.fund(shop, 5_001_000)
  // The acceptance of a restore needs a payment that was settled before the backup.
  expect((await fixture.deposit(shop)).body.data.status).toBe('success')
  const body = { payouts_require_approval: true, approval_threshold: 2_000, approvals_cover_deposits: true }
  expect(await fixture.rest('PUT', '/settings', { token: shop.token, body })).toMatchObject({ status: 200 })
  const [maker, other] = await Promise.all(
    [1, 2].map(() => makeMember(services.access, shop.merchantId, 'finance')),
  )
  if (!maker || !other) throw new Error('there are two')
  return { shop, maker, other }
}

/** A payment of 900,000 F that waits for approval. @returns its id, and its identity at the operator */
async function waits(maker: TestMember, kind: 'deposit' | 'payout') {
  const phone = customer('00')
  const asked = { amount: 900_000, payment_method: 'OperatorA' }
  const body =
    kind === 'deposit' ? { ...asked, customer_phone: phone } : { ...asked, destination_phone: phone }
  const path = kind === 'deposit' ? '/deposit' : '/payouts'
  const { data } = (await fixture.rest('POST', path, { token: maker.token, body })).body
  const id = (data.transaction_id ?? data.id) as number
  const table = kind === 'deposit' ? 'transaction' : 'payout'
  const { rows } = await owner.query<{ identity: string }>(
    `SELECT correlation_id AS identity FROM ${table} WHERE id = $1`,
    [id],
  )
  return { id, identity: rows[0]?.identity ?? '', phone }
}

/** The payment that the operator executed after the backup. */
async function payLost({ identity, phone }: Awaited<ReturnType<typeof waits>>): Promise<void> {
  const outcome = await services.operators.find('OperatorA')?.disburse(
    {
      handle: { correlationId: identity, clientRef: identity },
      amount: 900_000n,
      callbackUrl: `${fixture.url}/nowhere`,
      attempt: 1,
      payee: phone,
    },
    { deadline: new Date(Date.now() + 20_000), priority: 'background', record: () => {} },
  )
  expect(outcome?.kind).toBe('accepted')
}

async function declare(): Promise<void> {
  const { pool } = services.database
  await pool.query(`SELECT begin_epoch((SELECT epoch FROM installation), 'a test')`)
  await pool.query('UPDATE database_epoch SET keys_handled_at = now()')
  await services.restores.look()
}

function accept() {
  const { database, operators, clock } = services
  const options = { keepKeys: true, leftOut: null, patienceMs: 30_000, progress: () => {} }
  return acceptRestore({ pool: database.pool, operators, clock, ...options })
}

const orphansNow = async () => (await listOrphans(services.database.pool)).map((one) => one.correlationId)

async function approve({ token }: TestMember, id: number) {
  const digest = `query ($id: SafeInt) { transaction(databaseId: $id) { approval { digest } } }`
  const { approval } = (await ask(token, digest, { id })) as { approval: { digest: string } }
  const document = `mutation ($id: ID!, $digest: String!) { approveDeposit(id: $id, digest: $digest) {
    ... on Transaction { status } ... on Refusal { code } } }`
  return ask(token, document, { id: String(id), digest: approval.digest })
}

/** The number of times that the job has claimed the request of a deposit. */
async function attemptsOf(id: number): Promise<number> {
  const { rows } = await owner.query<{ n: number }>(
    'SELECT check_count AS n FROM operator_request WHERE transaction_id = $1',
    [id],
  )
  return rows[0]?.n ?? 0
}

test('a deposit paid after the backup, and approved again before the restore is accepted', async () => {
  const { shop, maker, other } = await openShop()
  const deposit = await waits(maker, 'deposit')
  await payLost(deposit)
  await declare()
  expect(await approve(other, deposit.id)).toMatchObject({ status: 'PROCESSING' })
  // A deposit that does not leave is given up after a while.
  await fixture.advance(minute)
  const attempts = await attemptsOf(deposit.id)
  // It is not yet known which deposits left: this one is neither sent nor given up.
  await eventually(async () => {
    const isClaimedAgain = (await attemptsOf(deposit.id)) > attempts + 1
    expect([await fixture.statusOf(shop, deposit.id), isClaimedAgain]).toEqual(['processing', true])
  })
  const { reconciled, orphans } = await accept()
  expect([reconciled.openRequestIds.length, orphans]).toEqual([1, []])
  expect(await fixture.statusOf(shop, deposit.id)).toBe('success')
  expect(await fixture.available(shop)).toBe(4_100_000)
  expect((await fixture.executionsOf(deposit.id)).map(({ count }) => count)).toEqual([1])
})

test('a payment that waits for approval is no orphan; once it is cancelled here it is one', async () => {
  const { maker, other } = await openShop()
  const deposit = await waits(maker, 'deposit')
  const payout = await waits(maker, 'payout')
  await payLost(deposit)
  await payLost(payout)
  await declare()
  const { reconciled, orphans } = await accept()
  expect([reconciled.notBegun, orphans]).toEqual([2, []])
  const reject = (kind: string, id: number) =>
    ask(other.token, `mutation ($id: ID!) { reject${kind}(id: $id, reason: "it was paid") { __typename } }`, {
      id: String(id),
    })
  expect(await reject('Deposit', deposit.id)).toEqual({ __typename: 'Transaction' })
  expect(await reject('Payout', payout.id)).toEqual({ __typename: 'Payout' })
  expect(new Set(await orphansNow())).toEqual(new Set([deposit.identity, payout.identity]))
})

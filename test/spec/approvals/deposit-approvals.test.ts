import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { cancelPayoutsOf } from '../../../src/resources/payouts/cancel-all.ts'
import { haltPaymentsOut, resumePaymentsOut } from '../../../src/ledger/payments-out.ts'
import { withClient } from '../../kit/client.ts'
import { nameHolder, makeMember } from '../../kit/members.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { approvalsOn } from '../../kit/approvals.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, hour, minute, openFixture } from '../../kit/fixture.ts'

// Deposits and refunds that wait for approval (see docs/design/rules.md#approvals).

const fixture = await openFixture()
const { owner } = fixture.database
const { access } = fixture.app.services
const { ask } = approvalsOn(fixture)

const person = ({ merchantId }: TestMerchant, role: 'owner' | 'finance' = 'finance') =>
  makeMember(access, merchantId, role)

async function shopWithApprovals(cover = true): Promise<TestMerchant> {
  const shop = await fixture.merchant()
  await fixture.fund(shop, 1_000_000)
  await nameHolder(owner, access, shop.merchantId)
  const body = { payouts_require_approval: true, approval_threshold: 2_000, approvals_cover_deposits: cover }
  expect(await fixture.rest('PUT', '/settings', { token: shop.token, body })).toMatchObject({ status: 200 })
  return shop
}

const fields = `databaseId status approval { status digest canApprove cannotApproveBecause required
  approvedBy { member { databaseId } } }`
const decided = `{ __typename ... on Transaction { ${fields} } ... on Refusal { code message } }`
const approvalOf = async (token: string, id: number) =>
  (await ask(token, `query ($id: SafeInt) { transaction(databaseId: $id) { ${fields} } }`, { id }))[
    'approval'
  ] as { digest: string; status: string }
const approve = async ({ token }: { token: string }, id: number, digest?: string) =>
  ask(token, `mutation ($id: ID!, $d: String!) { approveDeposit(id: $id, digest: $d) ${decided} }`, {
    id: String(id),
    d: digest ?? (await approvalOf(token, id)).digest,
  })
const reject = ({ token }: { token: string }, id: number) =>
  ask(token, `mutation ($id: ID!) { rejectDeposit(id: $id, reason: "no") ${decided} }`, { id: String(id) })

/** `POST /deposit` of 900,000 F that waits. @returns the id of its transaction */
async function waits(by: { token: string }, body: object = {}): Promise<number> {
  const answer = await fixture.deposit(by, { amount: 900_000, ...body })
  expect(answer).toMatchObject({
    status: 202,
    body: { success: true, data: { status: 'pending_approval', reference: expect.any(String) } },
  })
  return answer.body.data.transaction_id
}
const stepsOf = async (id: number) => {
  const { rows } = await owner.query<{ step: string }>(
    `SELECT step FROM ledger_entry WHERE origin = 'transaction:' || $1 ORDER BY id`,
    [String(id)],
  )
  return rows.map(({ step }) => step)
}
/** The number of times that a job has claimed its request. */
async function looksAt(id: number): Promise<number> {
  const { rows } = await owner.query<{ n: number }>(
    'SELECT check_count AS n FROM operator_request WHERE transaction_id = $1',
    [id],
  )
  return rows[0]?.n ?? 0
}
/** Runs `work` while a session of its own holds the lock that `statement` takes. */
function whileLocked<T>(statement: string, id: unknown, work: () => Promise<T>): Promise<T> {
  return withClient(owner, async (holder) => {
    await holder.query('BEGIN')
    await holder.query(statement, [id])
    return work()
  })
}
const nameOf = (query: unknown) => (query as { name?: string }).name
const statusOf = (shop: TestMerchant, id: number, status: string) =>
  eventually(async () => expect(await fixture.record(shop, id)).toMatchObject({ status }))

const refund = ({ token }: { token: string }, id: number, amount: number) =>
  ask(
    token,
    `mutation ($id: ID!, $amount: Amount) { refundTransaction(id: $id, amount: $amount) { __typename
      ... on PaymentInitiation { databaseId status } ... on Refusal { code } } }`,
    { id: String(id), amount },
  )

test('a deposit of exactly the threshold waits; one franc less does not', async () => {
  const maker = await person(await shopWithApprovals())
  expect(await fixture.deposit(maker, { amount: 1_999 })).toMatchObject({ status: 200 })
  expect(await fixture.deposit(maker, { amount: 2_000 })).toMatchObject({ status: 202 })
})

test('one person alone pays no deposit of the threshold; with another person it is paid once', async () => {
  const shop = await shopWithApprovals()
  const [maker, other] = [await person(shop), await person(shop)]
  expect(await fixture.deposit(maker, { amount: 1_999 })).toMatchObject({ status: 200 })
  const id = await waits(maker)
  expect(await fixture.record(shop, id)).toMatchObject({ status: 'pending', approval: 'pending' })
  expect(await fixture.available(shop)).toBe(1_000_000 - 1_999 - 900_000)
  expect(await approve(maker, id)).toMatchObject({ code: 'FORBIDDEN' })
  expect(await approvalOf(maker.token, id)).toMatchObject({ cannotApproveBecause: 'MAKER' })
  expect(await approve(other, id, 'f'.repeat(64))).toMatchObject({ code: 'STATE_CONFLICT' })
  expect(await ask(other.token, listed)).toMatchObject({
    totalCount: 1,
    nodes: [{ databaseId: id, transaction: { amount: 900_000 }, approval: { canApprove: true } }],
  })
  expect(await approve(other, id)).toMatchObject({ status: 'PROCESSING', approval: { status: 'APPROVED' } })
  await statusOf(shop, id, 'success')
  expect(await stepsOf(id)).toEqual(['reserve', 'post'])
  expect((await fixture.executionsOf(id)).map(({ count }) => count)).toEqual([1])
  expect(await fixture.eventsOf(id)).toEqual([
    'deposit_pending',
    'approval_given',
    'deposit_processing',
    'deposit_completed',
  ])
  expect(await approve(other, id)).toMatchObject({ code: 'STATE_CONFLICT' })
  expect((await owner.query('SELECT * FROM audit_ledger(true)')).rows).toEqual([])
})
const listed = `{ approvalsWaiting { totalCount nodes { __typename ... on DepositApproval { databaseId
  transaction { amount } approval { canApprove digest } } } } }`

test('over GraphQL likewise; a repeat under its Idempotency-Key and its reference finds it', async () => {
  const shop = await shopWithApprovals()
  const maker = await person(shop)
  const document = `mutation ($input: DepositInput!) { deposit(input: $input) { __typename
    ... on PaymentInitiation { databaseId status } ... on DuplicateReferenceError {
      existingTransaction { status } } } }`
  const input = {
    amount: 5_000,
    customerPhone: customer('00'),
    paymentMethod: 'OperatorA',
    reference: 'rent',
  }
  expect(await ask(maker.token, document, { input })).toMatchObject({ status: 'PENDING_APPROVAL' })
  expect(await ask(maker.token, document, { input })).toMatchObject({
    existingTransaction: { status: 'PENDING' },
  })
  expect((await fixture.check('rent')).body).toMatchObject({ state: 'pending' })
})

test('rejected or expired it is cancelled, its money is free, and no operator was asked', async () => {
  const shop = await shopWithApprovals()
  const [maker, other] = [await person(shop), await person(shop)]
  const [no, late] = [await waits(maker, { amount: 300_000 }), await waits(maker, { amount: 300_000 })]
  expect(await reject(maker, no)).toMatchObject({ code: 'FORBIDDEN' })
  expect(await reject(other, no)).toMatchObject({ status: 'CANCELLED', approval: { status: 'REJECTED' } })
  await fixture.advance(7 * 24 * 3_600_000 + 1_000)
  expect(await approve(other, late)).toMatchObject({ code: 'STATE_CONFLICT' })
  await owner.query('SELECT expire_approvals(10)')
  await statusOf(shop, late, 'cancelled')
  for (const id of [no, late]) expect(await stepsOf(id)).toEqual(['reserve', 'void'])
  expect(await fixture.available(shop)).toBe(1_000_000)
  const { rows } = await owner.query(`SELECT FROM operator_request WHERE transaction_id = ANY ($1)`, [
    [no, late],
  ])
  expect(rows).toEqual([])
  expect((await owner.query('SELECT * FROM audit_ledger(true)')).rows).toEqual([])
})

test('approved while payments out are halted, it waits until they resume and is paid once', async () => {
  const shop = await shopWithApprovals()
  const [maker, other] = [await person(shop), await person(shop)]
  const id = await waits(maker)
  const { pool } = fixture.database.database
  await haltPaymentsOut(pool, 'a test')
  expect(await approve(other, id)).toMatchObject({ status: 'PROCESSING' })
  await fixture.advance(hour)
  await eventually(async () => expect(await looksAt(id)).toBeGreaterThan(0))
  expect(await fixture.record(shop, id)).toMatchObject({ status: 'processing' })
  await resumePaymentsOut(pool, 'it is over')
  await fixture.advance(hour)
  await statusOf(shop, id, 'success')
  expect((await fixture.executionsOf(id)).map(({ count }) => count)).toEqual([1])
})

test('a refund waits too, and a waiting refund counts against the remainder of the payment', async () => {
  const shop = await shopWithApprovals()
  const [maker, other] = [await person(shop), await person(shop)]
  const { transaction_id: paid } = await fixture.paid(shop, { amount: 5_000, customer_phone: customer('00') })
  await statusOf(shop, paid as number, 'success')
  const first = await refund(maker, paid as number, 3_000)
  expect(first).toMatchObject({ status: 'PENDING_APPROVAL' })
  expect(await refund(maker, paid as number, 3_000)).toMatchObject({ code: 'REFUND_TOO_LARGE' })
  expect(await approve(other, first['databaseId'] as number)).toMatchObject({ status: 'PROCESSING' })
  await statusOf(shop, first['databaseId'] as number, 'success')
})

test('10 parallel refunds of 60 % that would wait: one does, the others find too little left', async () => {
  const shop = await shopWithApprovals()
  const maker = await person(shop)
  const { transaction_id: paid } = await fixture.paid(shop, { amount: 5_000, customer_phone: customer('00') })
  await statusOf(shop, paid as number, 'success')
  const reads = vi.spyOn(fixture.app.services.database.merchantPool, 'query')
  onTestFinished(() => reads.mockRestore())
  const refunds = await whileLocked('SELECT FROM transaction WHERE id = $1 FOR UPDATE', paid, async () => {
    const begun = Array.from({ length: 10 }, () => refund(maker, paid as number, 3_000))
    // Each refund has read how much may be given back before the first of them is recorded.
    await eventually(() => {
      const read = reads.mock.calls.map(
        ([query], index) => [query, reads.mock.settledResults[index]] as const,
      )
      const done = read.filter(([query, result]) => nameOf(query) === 'refundable_transaction' && result)
      expect(done.map(([, result]) => result?.type)).toEqual(Array(10).fill('fulfilled'))
    })
    return begun
  })
  const answers = await Promise.all(refunds)
  expect(answers.filter(({ status }) => status === 'PENDING_APPROVAL')).toHaveLength(1)
  expect(answers.filter(({ code }) => code === 'REFUND_TOO_LARGE')).toHaveLength(9)
})

test('approved while its merchant owes money, it does not leave before the debt is paid', async () => {
  const shop = await shopWithApprovals()
  const [maker, other] = [await person(shop), await person(shop)]
  const { transaction_id: paid } = await fixture.paid(shop, { customer_phone: customer('40', '60') })
  await statusOf(shop, paid as number, 'success')
  const id = await waits(maker, { amount: 1_000_000 })
  await Promise.all([1, 2].map(() => fixture.deposit(shop, { amount: 1_999 })))
  // The operator takes back a payment that the merchant has spent in part.
  await fixture.advance(2 * minute)
  await statusOf(shop, paid as number, 'reversed')
  expect(await approve(other, id)).toMatchObject({ status: 'PROCESSING' })
  await fixture.advance(minute)
  await eventually(async () => expect(await looksAt(id)).toBeGreaterThan(0))
  expect(await fixture.executionsOf(id)).toEqual([])
  await fixture.fund(shop, 10_000)
  await fixture.advance(minute)
  await statusOf(shop, id, 'success')
  expect((await fixture.executionsOf(id)).map(({ count }) => count)).toEqual([1])
})

test('a closed account has it cancelled, and no person is asked to approve it any more', async () => {
  const shop = await shopWithApprovals()
  const [maker, other] = [await person(shop), await person(shop)]
  const id = await waits(maker)
  const setStatus = (status: string) =>
    owner.query('UPDATE merchant SET status = $2 WHERE id = $1', [shop.merchantId, status])
  await setStatus('inactive')
  expect(await cancelPayoutsOf(fixture.app.services, shop.merchantId)).toBe(1)
  await setStatus('active')
  expect(await fixture.record(shop, id)).toMatchObject({ status: 'cancelled', approval: 'rejected' })
  expect(await stepsOf(id)).toEqual(['reserve', 'void'])
  expect(await ask(other.token, listed)).toMatchObject({ totalCount: 0 })
  expect(await approvalOf(other.token, id)).toMatchObject({ cannotApproveBecause: 'NOT_WAITING' })
  expect(await approve(other, id)).toMatchObject({ code: 'STATE_CONFLICT' })
})

describe('a deposit needs no approval', () => {
  test('while approvals do not cover deposits, or are off', async () => {
    const shop = await shopWithApprovals(false)
    expect(await fixture.deposit(shop, { amount: 900_000 })).toMatchObject({ status: 200 })
  })

  test('and no statement sends it without approval: the database refuses', async () => {
    const shop = await shopWithApprovals()
    const id = await waits(await person(shop))
    for (const force of [
      `UPDATE transaction SET status = 'processing' WHERE id = ${id}`,
      `UPDATE deposit_approval SET approval = 'approved' WHERE transaction_id = ${id}`,
      `UPDATE deposit_approval SET approvals_required = 0 WHERE transaction_id = ${id}`,
    ]) {
      await expect(owner.query(force)).rejects.toMatchObject({ code: '23000' })
    }
  })
})

test('100 approve and reject at once: it has one end', async () => {
  const shop = await shopWithApprovals()
  const maker = await person(shop)
  const others = await Promise.all(Array.from({ length: 10 }, () => person(shop)))
  const id = await waits(maker)
  const { digest } = await approvalOf(maker.token, id)
  await Promise.all(others.map((by, n) => (n % 2 ? approve(by, id, digest) : reject(by, id))))
  await eventually(async () => {
    const steps = await stepsOf(id)
    expect([['reserve', 'post'].join(), ['reserve', 'void'].join()]).toContain(steps.join())
  })
})

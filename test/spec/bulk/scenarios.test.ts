import { expect, onTestFinished, test } from 'vitest'
import { haltPaymentsOut, resumePaymentsOut } from '../../../src/ledger/payments-out.ts'
import { limits } from '../../../src/shared/limits.ts'
import { type Provider, providers } from '../../../src/shared/providers.ts'
import { startReceiver } from '../../kit/webhooks/receivers.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, hour, openFixture, second } from '../../kit/fixture.ts'
import { useBounds } from '../../kit/use-bounds.ts'

const fixture = await openFixture({ OPERATOR_C_BREAKER_OPEN_MS: '500' })
const { shop, draft, process, cancel, ended, money, summary, emitted } = bulkOn(fixture)
const { owner } = fixture.database

let recipients = 0
/** A recipient. More than a hundred of one kind share numbers. */
function paid(operator: Provider, scenario = '00', parameter = '00') {
  const own = String((recipients += 1) % 100).padStart(2, '0')
  return row(scenario, { payment_method: operator, account: `+22370${scenario}${parameter}${own}` })
}

/** The number of recipients of each operator with each status, `OperatorA success`. */
async function statuses(id: number): Promise<Record<string, number>> {
  const { rows } = await owner.query<{ what: string; n: number }>(
    `SELECT payment_method || ' ' || status AS what, count(*)::int AS n FROM batch_recipient
     WHERE batch_id = $1 GROUP BY 1`,
    [id],
  )
  return Object.fromEntries(rows.map(({ what, n }) => [what, n]))
}

/** Ends the time in which an earlier call may still arrive; it runs by the machine's clock. */
const lowerFences = () =>
  owner.query(
    `UPDATE operator_request SET fence_until = now() - interval '1 ms', query_after = NULL
     WHERE state IN ('doubt', 'unsent', 'sending') AND created_at < service_now() - interval '2 s'`,
  )

async function passTimeUntilEnded(merchant: TestMerchant, id: number): Promise<Record<string, unknown>> {
  return eventually(async () => {
    await lowerFences()
    await fixture.advance(2 * second)
    const batch = await summary(merchant, id)
    if (batch['processed_at'] === null) throw new Error(JSON.stringify(await statuses(id)))
    return batch
  })
}

/** All executions, by the operators' own book. */
async function theirBook() {
  const answer = await fetch(`${fixture.simulator.url}/_sim/invariants`, {
    headers: { 'x-control-token': fixture.controlToken },
  })
  const { executions, ok } = (await answer.json()) as {
    ok: boolean
    executions: { client_reference: string; kind: string; count: number; amount: string }[]
  }
  expect(ok).toBe(true)
  return new Map(executions.map((each) => [each.client_reference, each]))
}

/** The amount that each recipient of a batch was paid, by our books and by the operators' own. */
async function bothBooks(id: number) {
  const { rows } = await owner.query<{ name: string; scenario: string; settled: number | null }>(
    `SELECT q.correlation_id AS name, substr(r.account, 7, 2) AS scenario, r.settled_amount::int AS settled
     FROM batch_recipient r JOIN operator_request q ON q.recipient_id = r.id WHERE r.batch_id = $1`,
    [id],
  )
  const operatorBook = await theirBook()
  return rows.map(({ name, scenario, settled }) => {
    const { count = 0, amount = '0' } = operatorBook.get(name) ?? {}
    return { scenario, settled, count, amount: Number(amount) }
  })
}

test('with every failure on the way, counts and amounts equal the operators’ own book', async () => {
  const merchant = await shop(1_000_000)
  const played = ['00', '03', '20', '05', '22', '00', '23', '30', '24', '31', '00', '35', '34', '26', '33']
  const some = [
    ['41', '40'],
    ['21', '01'],
    ['25', '01'],
    ['40', '50'],
  ] as const // prettier-ignore
  const people = providers.flatMap((operator) => [
    ...played.map((scenario) => paid(operator, scenario)),
    ...some.map(([scenario, parameter]) => paid(operator, scenario, parameter)),
  ])
  const id = await draft(merchant, people)
  await process(merchant, id)
  const end = await passTimeUntilEnded(merchant, id)
  const books = await bothBooks(id)
  expect(books).toHaveLength(people.length)
  for (const { scenario, settled, count, amount } of books) {
    const isRefused = scenario === '03' || scenario === '05'
    const expected = isRefused ? null : scenario === '41' ? 1_960 : 2_000
    const book = { scenario, count: isRefused ? 0 : 1, amount: expected ?? 0 }
    expect({ scenario, settled, count, amount }).toEqual({ ...book, settled: expected })
  }
  const failed = 2 * providers.length
  const total = books.reduce((sum, { amount }) => sum + amount, 0)
  expect(end).toMatchObject({
    status: 'partially_completed',
    succeeded_count: people.length - failed,
    failed_count: failed,
    paid_amount: total,
  })
  expect(await emitted(id)).toContain('bulk_pay_done')
  // Taken back after 50 s: the money is there again, and the batch keeps its status.
  await fixture.advance(120 * second)
  await eventually(async () =>
    expect(await money(merchant)).toEqual({
      // 40 francs of the recipients paid less are withheld, for each operator.
      available: 1_000_000 - total + (2_000 - 40) * providers.length,
      reserved: 0,
    }),
  )
  expect(await summary(merchant, id)).toMatchObject({ status: 'partially_completed', paid_amount: total })
})

test('an operator that is down pauses its recipients, and no others; then it goes on', async () => {
  const merchant = await shop()
  await fixture.outage('OperatorC', 'refuse')
  const people = [20, 90].flatMap((count, n) =>
    Array.from({ length: count }, () => paid(n === 0 ? 'OperatorA' : 'OperatorC')),
  )
  const id = await draft(merchant, people)
  await process(merchant, id)
  await eventually(async () => expect(await statuses(id)).toMatchObject({ 'OperatorA success': 20 }))
  const down = await statuses(id)
  expect(down).not.toHaveProperty('OperatorC success')
  expect(down).not.toHaveProperty('OperatorC failed')
  // The recipients already begun found out that it is down; the others were not even begun.
  expect(down['OperatorC pending']).toBeGreaterThanOrEqual(20)
  expect(await summary(merchant, id)).toMatchObject({ status: 'processing' })
  await fixture.outage('OperatorC', 'none')
  expect(await passTimeUntilEnded(merchant, id)).toMatchObject({ status: 'completed', succeeded_count: 110 })
  expect((await bothBooks(id)).every(({ count }) => count === 1)).toBe(true)
})

test('a recipient that provably never reached its operator fails once the batch is cancelled', async () => {
  const merchant = await shop()
  await fixture.outage('OperatorC', 'refuse')
  onTestFinished(() => fixture.outage('OperatorC', 'none'))
  const people = Array.from({ length: 20 }, () => paid('OperatorC'))
  const id = await draft(merchant, people)
  await process(merchant, id)
  const unsent = await eventually(async () => {
    const { rows } = await owner.query<{ id: string }>(
      `SELECT r.id FROM operator_request q JOIN batch_recipient r ON r.id = q.recipient_id
       WHERE r.batch_id = $1 AND q.state = 'unsent'`,
      [id],
    )
    expect(rows).not.toEqual([])
    return rows.map((each) => each.id)
  })
  expect((await cancel(merchant, id)).status).toBe(200)
  await eventually(async () => {
    await lowerFences()
    await fixture.advance(2 * second)
    const { rows } = await owner.query(
      'SELECT DISTINCT status, failure_reason FROM batch_recipient WHERE id = ANY ($1)',
      [unsent],
    )
    expect(rows).toEqual([{ status: 'failed', failure_reason: 'OPERATOR_UNAVAILABLE' }])
  })
  await fixture.outage('OperatorC', 'none')
  const end = await passTimeUntilEnded(merchant, id)
  const begun = await bothBooks(id)
  const sent = begun.filter(({ count }) => count > 0)
  expect(end).toMatchObject({ status: 'cancelled', succeeded_count: sent.length })
  expect(sent.length).toBeLessThanOrEqual(begun.length - unsent.length)
  expect(await money(merchant)).toEqual({ available: 1_000_000 - 2_000 * sent.length, reserved: 0 })
})

test('an unknown outcome stays processing, and so does its batch, cancelled or not', async () => {
  const merchant = await shop()
  const id = await draft(merchant, [paid('OperatorA', '11'), paid('OperatorB'), paid('OperatorA', '00')])
  await process(merchant, id)
  await eventually(async () => expect(await summary(merchant, id)).toMatchObject({ succeeded_count: 2 }))
  await fixture.advance(3_600 * second)
  expect(await statuses(id)).toMatchObject({ 'OperatorA processing': 1 })
  expect((await cancel(merchant, id)).status).toBe(200)
  expect(await summary(merchant, id)).toMatchObject({ status: 'processing' })
  expect((await money(merchant)).reserved).toBe(2_000)
  expect(await emitted(id)).not.toContain('bulk_pay_done')
})

test('a payment beside a batch of 120 does not wait for it; the end comes once, by webhook', async () => {
  const merchant = await shop(2_000_000)
  const receiver = await startReceiver((response) => response.end())
  const hook = { url: `http://127.0.0.1:${receiver.port}/`, events: ['bulk_pay_done'] }
  expect((await fixture.rest('POST', '/webhooks', { token: merchant.token, body: hook })).status).toBe(201)
  const people = providers.flatMap((operator) => Array.from({ length: 30 }, () => paid(operator)))
  const id = await draft(merchant, people)
  // The batch cannot end before.
  await fixture.outage('OperatorC', 'refuse')
  onTestFinished(() => fixture.outage('OperatorC', 'none'))
  await process(merchant, id)
  for (const operator of ['OperatorA', 'OperatorB', 'OperatorD']) {
    const body = { customer_phone: customer('00'), payment_method: operator }
    expect((await fixture.pay(merchant, body)).status).toBe(202)
  }
  expect(await summary(merchant, id)).toMatchObject({ status: 'processing' })
  await fixture.outage('OperatorC', 'none')
  const end = await passTimeUntilEnded(merchant, id)
  await eventually(() => expect(receiver.arrived).toHaveLength(1))
  expect(JSON.parse(String(receiver.arrived[0]?.body))).toMatchObject({
    event: 'bulk_pay_done',
    data: { batch_id: id, status: 'completed', succeeded_count: 120, paid_amount: end['paid_amount'] },
  })
})

const stops = {
  cancelled: (merchant: TestMerchant, id: number) => cancel(merchant, id),
  halted: () => haltPaymentsOut(owner, 'a test'),
}

test.each(['cancelled', 'halted'] as const)(
  'once %s, only recipients at a quick operator are still paid',
  async (how) => {
    const merchant = await shop(2_000_000)
    // Two thirds of them are left when it is stopped: that takes the operator six seconds.
    const id = await draft(
      merchant,
      Array.from({ length: 600 }, () => paid('OperatorD')),
    )
    await process(merchant, id)
    await eventually(async () =>
      expect((await summary(merchant, id))['succeeded_count']).toBeGreaterThanOrEqual(200),
    )
    await stops[how](merchant, id)
    const before = (await theirBook()).size
    await eventually(async () => expect(await statuses(id)).not.toHaveProperty('OperatorD processing'))
    expect((await theirBook()).size - before).toBeLessThanOrEqual(8)
    if (how === 'halted') await resumePaymentsOut(owner, 'the test is over')
    const end = await ended(merchant, id)
    expect(end['status']).toBe(how === 'halted' ? 'completed' : 'cancelled')
    expect((await bothBooks(id)).filter(({ count }) => count > 0)).toHaveLength(
      end['succeeded_count'] as number,
    )
  },
)

// The last test, because the operator never answers its calls.
test('an operator that hangs delays neither the others of its batch, nor other batches', async () => {
  useBounds(limits, { disburseSyncDeadlineMs: hour }, onTestFinished)
  await fixture.outage('OperatorD', 'hang')
  const [merchant, other] = [await shop(), await shop()]
  const quick = Array.from({ length: 30 }, () => paid('OperatorA'))
  const hanging = Array.from({ length: 30 }, () => paid('OperatorD'))
  const id = await draft(merchant, [...hanging, ...quick])
  const id2 = await draft(other, quick.slice(0, 10))
  await Promise.all([process(merchant, id), process(other, id2)])
  await ended(other, id2)
  await eventually(async () => expect(await statuses(id)).toMatchObject({ 'OperatorA success': 30 }))
  const now = await statuses(id)
  expect((now['OperatorD pending'] ?? 0) + (now['OperatorD processing'] ?? 0)).toBe(30)
})

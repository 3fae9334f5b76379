import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { limits } from '../../../src/shared/limits.ts'
import { providers } from '../../../src/shared/providers.ts'
import { watchAvailable } from '../../kit/money-out.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { customer, minute, openFixture } from '../../kit/fixture.ts'
import { useBounds } from '../../kit/use-bounds.ts'

// `POST /deposit` by many callers at once, and repeated.

// Every answer is an outcome, also where sixty callers at once keep the machine busy.
useBounds(limits, { depositWaitMs: 2 * minute })

const fixture = await openFixture()
const { owner } = fixture.database

async function shopWith(amount: number): Promise<TestMerchant> {
  const shop = await fixture.merchant()
  await fixture.fund(shop, amount)
  return shop
}

async function balanceOf(shop: TestMerchant): Promise<{ available: number; reserved: number }> {
  const { body } = await fixture.rest('GET', '/balance', { token: shop.token })
  const { available, reserved } = body.data
  return { available, reserved }
}

test('N x 1,000 and 3N at once over two processes: exactly N, and available never below 0', async () => {
  const count = 20
  const shop = await shopWith(count * 1_000)
  // OperatorC is queried after three seconds.
  const prompt = providers.filter((operator) => operator !== 'OperatorC')
  const bases = [fixture.url, await fixture.sibling()]
  const stopWatching = watchAvailable(owner, shop.merchantId)
  const answers = await Promise.all(
    Array.from({ length: 3 * count }, (_, nth) =>
      fixture.deposit(shop, { payment_method: prompt[nth % 3] }, bases[nth % 2]),
    ),
  )
  const seen = await stopWatching()
  const statuses = answers.map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(count)
  expect(statuses.filter((status) => status === 400)).toHaveLength(2 * count)
  expect(await balanceOf(shop)).toEqual({ available: 0, reserved: 0 })
  expect(seen.length).toBeGreaterThan(10)
  expect(seen.filter((available) => available < 0n)).toEqual([])
  const made = answers.filter(({ status }) => status === 200).map(({ body }) => body.data.transaction_id)
  const executions = (await Promise.all(made.map((id) => fixture.executionsOf(id)))).flat()
  expect(executions).toHaveLength(count)
  for (const execution of executions) expect(execution).toMatchObject({ count: 1, amount: '1000' })
})

test('100 of one reference at once over two processes: one is paid', async () => {
  const shop = await shopWith(100_000)
  const bases = [fixture.url, await fixture.sibling()]
  const body = { reference: randomUUID(), customer_phone: customer('00') }
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, nth) => fixture.deposit(shop, body, bases[nth % 2])),
  )
  const statuses = answers.map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(1)
  expect(statuses.filter((status) => status === 409)).toHaveLength(99)
  const made = answers.find(({ status }) => status === 200)
  expect(await fixture.executionsOf(made?.body.data.transaction_id)).toMatchObject([{ count: 1 }])
  expect(await balanceOf(shop)).toEqual({ available: 99_000, reserved: 0 })
})

describe('under an Idempotency-Key', () => {
  const keyed = (shop: TestMerchant, key: string, body: object) =>
    fixture.rest('POST', '/deposit', { token: shop.token, body, headers: { 'Idempotency-Key': key } })

  test('a repeat gets the first answer, a refusal too', async () => {
    const shop = await shopWith(10_000)
    for (const scenario of ['00', '03']) {
      const key = randomUUID()
      const body = { amount: 1_000, payment_method: 'OperatorA', customer_phone: customer(scenario) }
      const [first, again] = [await keyed(shop, key, body), await keyed(shop, key, body)]
      expect(again.body).toEqual(first.body)
      expect(again.headers.get('idempotent-replayed')).toBe('true')
    }
    expect(await balanceOf(shop)).toEqual({ available: 9_000, reserved: 0 })
  })

  test('a request that died before its answer was kept goes on with its own deposit', async () => {
    const shop = await shopWith(10_000)
    const key = randomUUID()
    const body = { amount: 1_000, payment_method: 'OperatorA', customer_phone: customer('00') }
    const first = await keyed(shop, key, body)
    await owner.query(
      `UPDATE idempotency_key SET answer = NULL, locked_until = clock_timestamp() - interval '1 ms'
       WHERE key = $1`,
      [key],
    )
    const again = await keyed(shop, key, body)
    expect([again.status, again.body.data]).toEqual([200, first.body.data])
    expect(await balanceOf(shop)).toEqual({ available: 9_000, reserved: 0 })
  })

  test('a refusal for too little balance leaves the key free', async () => {
    const shop = await fixture.merchant()
    const key = randomUUID()
    const body = { amount: 1_000, payment_method: 'OperatorA', customer_phone: customer('00') }
    expect((await keyed(shop, key, body)).status).toBe(400)
    await fixture.fund(shop, 1_000)
    expect((await keyed(shop, key, body)).status).toBe(200)
  })
})

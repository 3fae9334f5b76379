import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type App, startApp } from '../../../src/app.ts'
import { haltPaymentsOut, resumePaymentsOut } from '../../../src/ledger/payments-out.ts'
import { limits } from '../../../src/shared/limits.ts'
import { entriesOf } from '../../kit/money-out.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, each, hour, openFixture, perOperator, second } from '../../kit/fixture.ts'

// `POST /deposit`. The wait for the outcome is shorter where the outcome does not come; queries come soon.
const wait = vi.hoisted(() => ({ ms: null as number | null }))
vi.mock(import('../../../src/shared/limits.ts'), async (original) => {
  const { limits: real } = await original()
  const waits = {
    get depositWaitMs() {
      return wait.ms ?? real.depositWaitMs
    },
  }
  return { limits: Object.defineProperties({ ...real }, Object.getOwnPropertyDescriptors(waits)) }
})
/** While true, the first question about a deposit comes after an hour. */
const questions = vi.hoisted(() => ({ areLate: false }))
vi.mock(import('../../../src/requests/schedule.ts'), async (original) => {
  const quick = (await import('../../kit/quick-polls.ts')).quickPolls(await original())
  return {
    ...quick,
    firstCheckMs: (...given) => (questions.areLate ? hour : quick.firstCheckMs(...given)),
  }
})

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

test('the answer waits for 20 s at most', () => expect(limits.depositWaitMs).toBe(20 * second))

describe('200', () => {
  test('200 with the initiation, success: debited once, at each operator', async () => {
    const shop = await shopWith(100_000)
    const results = await perOperator(async (operator) => {
      const { status, body } = await fixture.deposit(shop, { amount: 1_500, payment_method: operator })
      expect(status).toBe(200)
      expect(body).toEqual({
        success: true,
        request_id: expect.any(String),
        data: {
          transaction_id: expect.any(Number),
          reference: expect.stringMatching(/^dp_[0-9a-f]{32}$/),
          amount: 1_500,
          currency: 'XOF',
          payment_method: operator,
          status: 'success',
          initiated_at: expect.any(String),
        },
      })
      const { transaction_id: id } = body.data
      const [execution, ...more] = await fixture.executionsOf(id)
      expect(more).toEqual([])
      expect(execution).toMatchObject({ operator, kind: 'disburse', count: 1, amount: '1500' })
      return fixture.eventsOf(id)
    })
    expect(results).toEqual(each(['deposit_processing', 'deposit_completed']))
    expect(await balanceOf(shop)).toEqual({ available: 100_000 - 4 * 1_500, reserved: 0 })
  })

  test('the answer comes with the callback, also where no question is due for an hour', async () => {
    const shop = await shopWith(10_000)
    questions.areLate = true
    onTestFinished(() => void (questions.areLate = false))
    const { status, body } = await fixture.deposit(shop, { customer_phone: customer('00', '01') })
    expect([status, body.data.status]).toEqual([200, 'success'])
    expect(await fixture.callbacksOf(body.data.transaction_id)).toBeGreaterThan(0)
  })

  test('the record keeps the request and the answer', async () => {
    const shop = await shopWith(10_000)
    const asked = {
      amount: 2_000,
      currency: 'XOF',
      customer_phone: customer('00'),
      payment_method: 'OperatorD',
      reference: randomUUID(),
      description: 'Retour de caution',
    }
    const { body } = await fixture.deposit(shop, asked)
    expect(await fixture.record(shop, body.data.transaction_id)).toMatchObject({
      transaction_type: 'deposit',
      status: 'success',
      reference: asked.reference,
      request_data: asked,
    })
    const { body: payerView } = await fixture.check(asked.reference)
    expect(payerView).toMatchObject({ state: 'success', status: true })
  })
})

describe('400', () => {
  test('a refused deposit: data.status failed, the money free again, and recorded', async () => {
    const shop = await shopWith(10_000)
    const results = await perOperator(async (operator) => {
      const { status, body } = await fixture.deposit(shop, {
        payment_method: operator,
        customer_phone: customer('03'),
      })
      const { transaction_id: id, ...data } = body.data
      expect(await fixture.record(shop, id)).toMatchObject({
        status: 'failed',
        response_data: { failure: { reason: 'PAYEE_NOT_FOUND', who: 'merchant', again: 'no' } },
      })
      return [status, body.success, body.message, data.status, await fixture.eventsOf(id)]
    })
    const events = ['deposit_processing', 'deposit_failed']
    const message = 'The recipient has no mobile-money account.'
    expect(results).toEqual(each([400, false, message, 'failed', events]))
    expect(await balanceOf(shop)).toEqual({ available: 10_000, reserved: 0 })
  })

  test('refused after a while, within the request', async () => {
    const shop = await shopWith(10_000)
    const { status, body } = await fixture.deposit(shop, { customer_phone: customer('01', '01') })
    expect(status).toBe(400)
    expect(body).toMatchObject({ success: false, data: { status: 'failed' } })
    expect(await balanceOf(shop)).toEqual({ available: 10_000, reserved: 0 })
  })

  test('too little available: nothing recorded', async () => {
    const shop = await shopWith(1_999)
    const before = await fixture.rowCounts()
    const { status, body } = await fixture.deposit(shop, { amount: 2_000 })
    expect(status).toBe(400)
    expect(body).toEqual({
      success: false,
      code: 'INSUFFICIENT_BALANCE',
      docs: expect.stringContaining('#INSUFFICIENT_BALANCE'),
      request_id: expect.any(String),
      message: expect.stringMatching(/available balance.*Nothing was recorded/),
    })
    expect(await fixture.rowCounts()).toEqual(before)
  })

  test('a merchant that owes a reversed payment gets a refusal that says so', async () => {
    const shop = await shopWith(0 + 1)
    const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('40', '50') })
    await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('success'))
    await fixture.deposit(shop, { amount: 5_000, payment_method: 'OperatorD' })
    await fixture.advance(51 * second)
    await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('reversed'))
    const { status, body } = await fixture.deposit(shop)
    expect([status, body.message]).toEqual([400, expect.stringMatching(/owes 4999 XOF/)])
  })

  test.each([
    [{ amount: 999 }, 'amount'],
    [{ amount: 1_000_001 }, 'amount'],
    [{ amount: undefined }, 'amount'],
    [{ customer_phone: '12' }, 'customer_phone'],
    [{ customer_phone: undefined }, 'customer_phone'],
    [{ payment_method: 'BankTransfer' }, 'payment_method'],
    [{ payment_method: undefined }, 'payment_method'],
    [{ currency: 'EUR' }, 'currency'],
    [{ reference: '' }, 'reference'],
  ])('%j is invalid in %s', async (wrong, field) => {
    const shop = await shopWith(10_000)
    const { status, body } = await fixture.deposit(shop, wrong)
    expect(status).toBe(400)
    expect(body.errors.map((problem: { field: string }) => problem.field)).toEqual([field])
    expect(await balanceOf(shop)).toEqual({ available: 10_000, reserved: 0 })
  })

  test('an operator that is known to be down: nothing recorded', async () => {
    const shop = await shopWith(100_000)
    const find = vi.spyOn(fixture.app.services.operators, 'find')
    const real = fixture.app.services.operators.find('OperatorC')
    if (!real) throw new Error('no OperatorC')
    find.mockReturnValue({ ...real, canStart: () => ({ ok: false, cause: 'circuit_open' }) })
    const before = await fixture.rowCounts()
    const { status, body } = await fixture.deposit(shop, { payment_method: 'OperatorC' })
    find.mockRestore()
    expect([status, body.data]).toEqual([400, undefined])
    expect(await fixture.rowCounts()).toEqual(before)
  })
})

test('401 without a token, 403 without the scope deposit', async () => {
  expect((await fixture.deposit({ token: 'x' })).status).toBe(401)
  const shop = await shopWith(10_000)
  const { body } = await fixture.rest('POST', '/auth', {
    headers: { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret },
    body: { scopes: ['pay', 'payout', 'balance'] },
  })
  const answer = await fixture.deposit({ token: body.data.token })
  expect([answer.status, answer.body.required_scopes]).toEqual([403, ['deposit']])
})

test('409 a reference of a deposit or a payment, with that transaction', async () => {
  const shop = await shopWith(10_000)
  const [first, other] = [randomUUID(), randomUUID()]
  const { transaction_id: id } = await fixture.paid(shop, { reference: first })
  const made = await fixture.deposit(shop, { reference: other })
  const answers = [
    await fixture.deposit(shop, { reference: first }),
    await fixture.deposit(shop, { reference: other }),
  ]
  expect(answers.map(({ status, body }) => [status, body.existing_transaction])).toEqual([
    [409, { id, status: 'pending' }],
    [409, { id: made.body.data.transaction_id, status: 'success' }],
  ])
  expect(await balanceOf(shop)).toEqual({ available: 9_000, reserved: 0 })
})

test('503 while payments out are halted: nothing recorded', async () => {
  const shop = await shopWith(10_000)
  await haltPaymentsOut(owner, 'a test')
  const { status, body } = await fixture.deposit(shop)
  await resumePaymentsOut(owner, 'a test')
  expect([status, body.data]).toEqual([503, undefined])
  expect(await balanceOf(shop)).toEqual({ available: 10_000, reserved: 0 })
})

describe('202: the outcome is not known yet', () => {
  const waitMs = 1_500
  beforeAll(() => {
    wait.ms = waitMs
  })
  afterAll(() => {
    wait.ms = null
  })

  /** A deposit to a customer that never answers by itself. */
  async function opened(shop: TestMerchant, body: object = {}) {
    const sent = performance.now()
    const answer = await fixture.deposit(shop, { customer_phone: customer('11'), ...body })
    expect(answer.status).toBe(202)
    expect(answer.body).toMatchObject({ success: true, data: { status: 'processing' } })
    return { id: answer.body.data.transaction_id as number, tookMs: performance.now() - sent }
  }

  test('processing after the wait; then completed, or failed and free again', async () => {
    const shop = await shopWith(10_000)
    const [paid, refused] = await Promise.all([opened(shop), opened(shop)])
    expect(paid.tookMs).toBeGreaterThan(waitMs - 50)
    expect(await balanceOf(shop)).toEqual({ available: 8_000, reserved: 2_000 })
    await fixture.answer(paid.id, 'confirm')
    await fixture.answer(refused.id, 'decline')
    await eventually(async () => expect(await balanceOf(shop)).toEqual({ available: 9_000, reserved: 0 }))
    expect(await fixture.eventsOf(paid.id)).toEqual(['deposit_processing', 'deposit_completed'])
    expect(await fixture.eventsOf(refused.id)).toEqual(['deposit_processing', 'deposit_failed'])
    expect(await entriesOf(owner, `transaction:${refused.id}`)).toEqual([
      'reserve available > reserved 1000',
      'void reserved > available 1000',
    ])
  })

  test('a deposit is queried until its outcome is known, also days later; it never expires', async () => {
    const shop = await shopWith(10_000)
    const { id } = await opened(shop, { customer_phone: customer('12', '72') })
    await fixture.advance(71 * hour)
    expect(await fixture.statusOf(shop, id)).toBe('processing')
    expect(await balanceOf(shop)).toEqual({ available: 9_000, reserved: 1_000 })
    await fixture.advance(hour + 60 * second)
    await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('success'))
    expect(await fixture.executionsOf(id)).toMatchObject([{ count: 1, amount: '1000' }])
  })

  test('a service that ends answers 202 at once, and another one applies the outcome', async () => {
    const shop = await shopWith(10_000)
    const { config } = fixture.app.services
    const other: App = await startApp({ ...config, port: 0 }, fixture.database.connection)
    afterAll(() => other.close())
    // Only the end of the service can bring the answers.
    wait.ms = hour
    onTestFinished(() => void (wait.ms = waitMs))
    const base = other.services.addresses.publicUrl
    // One operator is undecided; the other has paid, and its answer hangs.
    const undecided = { customer_phone: customer('11'), payment_method: 'OperatorA' }
    const hanging = { customer_phone: customer('21', '20'), payment_method: 'OperatorD' }
    const waiting = [undecided, hanging].map((body) => fixture.deposit(shop, body, base))
    await eventually(async () => expect(await balanceOf(shop)).toMatchObject({ reserved: 2_000 }))
    await sleep(100)
    void other.close()
    const answers = await Promise.all(waiting)
    expect(answers.map(({ status, body }) => [status, body.data.status])).toEqual([
      [202, 'processing'],
      [202, 'processing'],
    ])
    await other.close()
    const ids = answers.map(({ body }) => body.data.transaction_id as number)
    await fixture.answer(ids[0], 'confirm')
    for (const id of ids)
      await eventually(async () =>
        expect(await fixture.eventsOf(id)).toEqual(['deposit_processing', 'deposit_completed']),
      )
    expect(await balanceOf(shop)).toEqual({ available: 8_000, reserved: 0 })
  })
})

describe('GraphQL deposit', () => {
  const ask = (shop: TestMerchant, more: object = {}) =>
    fixture.graphql(
      `mutation ($input: DepositInput!) { deposit(input: $input) { __typename
        ... on PaymentInitiation { status transaction { status settledAmount failure { reason } } }
        ... on PaymentRefusedError {
          message initiation { status transaction { failure { reason who again } } } }
        ... on Refusal { code } } }`,
      { input: { amount: 1_000, customerPhone: customer('00'), paymentMethod: 'OperatorA', ...more } },
      shop.token,
    )

  test('gives the initiation, or a typed refusal', async () => {
    const shop = await shopWith(1_500)
    expect((await ask(shop)).body.data.deposit).toMatchObject({
      __typename: 'PaymentInitiation',
      status: 'SUCCESS',
      transaction: { status: 'SUCCESS', settledAmount: 1_000, failure: null },
    })
    expect((await ask(shop)).body.data.deposit).toMatchObject({
      __typename: 'InsufficientBalanceError',
      code: 'INSUFFICIENT_BALANCE',
    })
    await fixture.fund(shop, 1_000)
    expect((await ask(shop, { customerPhone: customer('03') })).body.data.deposit).toMatchObject({
      __typename: 'PaymentRefusedError',
      initiation: {
        status: 'FAILED',
        transaction: { failure: { reason: 'PAYEE_NOT_FOUND', who: 'MERCHANT', again: 'NO' } },
      },
    })
  })
})

import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { providers } from '../../src/shared/providers.ts'
import { customer, each, openFixture, perOperator } from '../kit/fixture.ts'

const fixture = await openFixture()
const shop = await fixture.merchant()

describe('POST /pay', () => {
  test('202 with the payment initiation result, pending', async () => {
    const phone = customer('11')
    const { status, body } = await fixture.pay(shop, {
      amount: 5_000,
      customer_phone: phone,
      payment_method: 'OperatorA',
      reference: 'order-1',
    })
    expect(status).toBe(202)
    expect(body).toEqual({
      success: true,
      request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      data: {
        transaction_id: expect.any(Number),
        reference: 'order-1',
        amount: 5_000,
        currency: 'XOF',
        payment_method: 'OperatorA',
        status: 'pending',
        initiated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
    })
  })

  test('the customer is prompted once, for the amount that was asked', async () => {
    const phone = customer('11')
    await fixture.paid(shop, { customer_phone: phone, amount: 1_234 })
    const prompts = (await fixture.seen(phone)).filter(({ method }) => method === 'POST')
    expect(prompts.map(({ body }) => JSON.parse(body))).toMatchObject([{ amount: '1234', currency: 'XOF' }])
  })

  test('a hosted-checkout operator gives a payment_url; the others do not', async () => {
    const urls = await perOperator(async (operator) => {
      const { payment_url: url } = await fixture.paid(shop, { payment_method: operator })
      return typeof url === 'string' && URL.canParse(url)
    })
    expect(urls).toEqual({ ...each(false), OperatorB: true })
  })

  test('return_url and cancel_url reach the hosted page', async () => {
    const mark = randomUUID()
    await fixture.paid(shop, {
      payment_method: 'OperatorB',
      return_url: `https://shop.example/ok/${mark}`,
      cancel_url: `https://shop.example/no/${mark}`,
    })
    const [session] = await fixture.seen(mark)
    expect(JSON.parse(session?.body ?? '{}')).toMatchObject({
      success_url: `https://shop.example/ok/${mark}`,
      error_url: `https://shop.example/no/${mark}`,
    })
  })

  test('nothing is credited by the answer alone', async () => {
    const before = await fixture.available(shop)
    const { transaction_id: id } = await fixture.paid(shop)
    expect(await fixture.available(shop)).toBe(before)
    expect(await fixture.creditsOf(id)).toEqual([])
    expect(await fixture.eventsOf(id)).toEqual(['payment_pending'])
  })

  test('a reference is made where none is given, with 128 random bits', async () => {
    const made = [await fixture.paid(shop), await fixture.paid(shop, { reference: null })]
    const references = made.map(({ reference }) => String(reference))
    expect(new Set(references).size).toBe(2)
    for (const reference of references) expect(reference).toMatch(/[0-9a-f]{32}$/)
  })

  test('currency defaults to XOF and may be said', async () => {
    expect(await fixture.paid(shop, { currency: 'XOF' })).toMatchObject({ currency: 'XOF' })
  })

  test('all fields of the specification are taken and kept', async () => {
    const asked = {
      amount: 2_500,
      currency: 'XOF',
      customer_phone: customer('11'),
      payment_method: 'OperatorC',
      customer_email: 'awa@example.com',
      reference: 'order-all-fields',
      description: 'Deux pagnes',
      return_url: 'https://shop.example/ok',
      cancel_url: 'https://shop.example/no',
    }
    const { transaction_id: id } = await fixture.paid(shop, asked)
    expect((await fixture.record(shop, id))['request_data']).toEqual(asked)
  })
})

describe('POST /pay, 409', () => {
  test('409 existing reference returns existing_transaction', async () => {
    const first = await fixture.paid(shop, { reference: 'twice' })
    const again = await fixture.pay(shop, {
      reference: 'twice',
      amount: 9_999,
      customer_phone: customer('00'),
    })
    expect(again.status).toBe(409)
    expect(again.body).toMatchObject({
      success: false,
      message: expect.any(String),
      existing_transaction: { id: first['transaction_id'], status: 'pending' },
    })
    expect(Object.keys(again.body['existing_transaction'])).toEqual(['id', 'status'])
  })

  test('409 says the status of today, and a failed payment keeps its reference for ever', async () => {
    const refused = await fixture.pay(shop, { reference: 'refused', customer_phone: customer('03') })
    expect(refused.status).toBe(400)
    const again = await fixture.pay(shop, { reference: 'refused' })
    expect(again.status).toBe(409)
    expect(again.body['existing_transaction']).toEqual({
      id: refused.body['data'].transaction_id,
      status: 'failed',
    })
  })

  test('409 writes nothing and prompts nobody', async () => {
    await fixture.paid(shop, { reference: 'quiet' })
    const before = await fixture.rowCounts()
    const phone = customer('11')
    expect((await fixture.pay(shop, { reference: 'quiet', customer_phone: phone })).status).toBe(409)
    expect(await fixture.rowCounts()).toEqual(before)
    expect(await fixture.seen(phone)).toEqual([])
  })

  test('a reference differs by its case', async () => {
    await fixture.paid(shop, { reference: 'Case' })
    expect((await fixture.pay(shop, { reference: 'case' })).status).toBe(202)
  })

  test('another merchant uses the same reference freely', async () => {
    const other = await fixture.merchant()
    const mine = await fixture.paid(shop, { reference: 'shared' })
    const theirs = await fixture.paid(other, { reference: 'shared' })
    expect(theirs['transaction_id']).not.toBe(mine['transaction_id'])
  })

  test('50 at once with one reference: one 202, 49 x 409 with the same transaction, one prompt', async () => {
    const phone = customer('11')
    const before = await fixture.rowCounts()
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => fixture.pay(shop, { reference: 'race', customer_phone: phone })),
    )
    const [taken, ...others] = answers.toSorted((a, b) => a.status - b.status)
    expect(taken?.status).toBe(202)
    expect(others.map(({ status }) => status)).toEqual(Array(49).fill(409))
    const named = new Set(others.map(({ body }) => body['existing_transaction'].id))
    expect([...named]).toEqual([taken?.body['data'].transaction_id])
    expect((await fixture.seen(phone)).filter(({ method }) => method === 'POST')).toHaveLength(1)
    const { transaction, operator_request: requests, event, ledger_entry } = await fixture.rowCounts()
    expect({ transaction, operator_request: requests, event, ledger_entry }).toEqual({
      transaction: before.transaction + 1,
      operator_request: before.operator_request + 1,
      event: before.event + 1,
      ledger_entry: before.ledger_entry,
    })
  })
})

describe('POST /pay, 400', () => {
  test.each(['amount', 'customer_phone', 'payment_method'])('%s is required', async (field) => {
    const { status, body } = await fixture.pay(shop, { [field]: undefined })
    expect(status).toBe(400)
    expect(body['errors']).toEqual([{ field, message: 'is required' }])
    expect(body['message']).toContain(field)
  })

  test('BankTransfer is not taken here', async () => {
    const { status, body } = await fixture.pay(shop, { payment_method: 'BankTransfer' })
    expect(status).toBe(400)
    expect(body['errors'][0].field).toBe('payment_method')
  })

  test.each(['operatora', 'OperatorE', '', 1, null])('payment_method %s', async (name) => {
    expect((await fixture.pay(shop, { payment_method: name })).status).toBe(400)
  })

  test('every problem is listed', async () => {
    const { status, body } = await fixture.rest('POST', '/pay', {
      token: shop.token,
      body: { amount: '5000', customer_phone: 'me', currency: 'EUR', customer_email: 'x', reference: '' },
    })
    expect(status).toBe(400)
    expect(body['errors'].map(({ field }: { field: string }) => field).toSorted()).toEqual([
      'amount',
      'currency',
      'customer_email',
      'customer_phone',
      'payment_method',
      'reference',
    ])
  })

  test.each(['03', '05'])(
    'an operator that refuses %s in its first answer: failed, and recorded',
    async (scenario) => {
      const { status, body } = await fixture.pay(shop, { customer_phone: customer(scenario), amount: 700 })
      expect(status).toBe(400)
      expect(body).toMatchObject({
        success: false,
        message: expect.stringMatching(/\w+ \w+/),
        data: { status: 'failed', amount: 700, currency: 'XOF', payment_method: 'OperatorA' },
      })
      const { transaction_id: id, reference } = body['data']
      const record = await fixture.record(shop, id)
      expect(record).toMatchObject({ status: 'failed', reference })
      expect(record['response_data'].failure.reason).toMatch(/^PAYER_/)
      expect(await fixture.eventsOf(id)).toEqual(['payment_pending', 'payment_failed'])
      expect(await fixture.creditsOf(id)).toEqual([])
    },
  )
})

describe('POST /pay, the operator is out of order', () => {
  test('no answer or an unclear one is 202 pending: the customer may pay', async () => {
    const answers = await perOperator(async (operator) => {
      await fixture.outage(operator, operator === 'OperatorA' ? 'refuse' : '5xx')
      const { status, body } = await fixture.pay(shop, { payment_method: operator })
      await fixture.outage(operator, 'none')
      return [status, body['data']?.status]
    })
    expect(answers).toEqual(each([202, 'pending']))
  })

  test('known to be down before anything is sent: 400, nothing recorded, the reference free', async () => {
    const existing = await fixture.paid(shop, { reference: 'from-before', payment_method: 'OperatorD' })
    await fixture.outage('OperatorD', 'refuse')
    for (let failures = 0; failures < 5; failures += 1)
      await fixture.pay(shop, { payment_method: 'OperatorD' })

    const before = await fixture.rowCounts()
    const phone = customer('11')
    const asked = { reference: 'while-down', customer_phone: phone, payment_method: 'OperatorD' }
    const { status, body } = await fixture.pay(shop, asked)
    expect(status).toBe(400)
    expect(body).toMatchObject({ success: false })
    expect(body['data']).toBeUndefined()
    expect(await fixture.rowCounts()).toEqual(before)
    expect(await fixture.seen(phone)).toEqual([])

    // Whoever repeats a request that was taken must not hear that nothing was recorded.
    const repeated = await fixture.pay(shop, { reference: 'from-before', payment_method: 'OperatorD' })
    expect(repeated.status).toBe(409)
    expect(repeated.body['existing_transaction'].id).toBe(existing['transaction_id'])

    const status2 = await fixture.rest('GET', '/status')
    expect(status2.body['data'].operators).toContainEqual({
      payment_method: 'OperatorD',
      collect: 'down',
      disburse: 'down',
    })
    expect(status2.body['data'].status).toBe('degraded')
    expect(await fixture.paid(shop, { reference: 'while-down', payment_method: 'OperatorA' })).toMatchObject({
      reference: 'while-down',
    })
    await fixture.outage('OperatorD', 'none')
  })

  test('an operator that is down leaves the others alone', async () => {
    await fixture.outage('OperatorC', 'refuse')
    for (let failures = 0; failures < 6; failures += 1)
      await fixture.pay(shop, { payment_method: 'OperatorC' })
    expect((await fixture.pay(shop, { payment_method: 'OperatorC' })).status).toBe(400)
    for (const operator of providers.filter((name) => name === 'OperatorA' || name === 'OperatorB'))
      await fixture.paid(shop, { payment_method: operator })
    await fixture.outage('OperatorC', 'none')
  })
})

import { describe, expect, onTestFinished, test } from 'vitest'
import { many } from '../../kit/at-once.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, each, hour, minute, openFixture, perOperator, second } from '../../kit/fixture.ts'
import { claimBounds } from '../../../src/requests/store.ts'
import { useBounds } from '../../kit/use-bounds.ts'

const pauseMs = claimBounds.operatorQueryIntervalMs
const fixture = await openFixture()
// The fixture asks more often; this file tests the pause itself.
useBounds(claimBounds, { operatorQueryIntervalMs: pauseMs })
const shop = await fixture.merchant()

describe('GET /payment/status/{reference}', () => {
  test('a payment that is not confirmed: state pending, status false, no envelope', async () => {
    const { reference } = await fixture.paid(shop)
    const { status, body } = await fixture.check(reference)
    expect(status).toBe(200)
    expect(body).toEqual({ message: expect.stringMatching(/\w/), state: 'pending', status: false })
  })

  test('a request in French gets French', async () => {
    const { reference } = await fixture.paid(shop)
    const ask = (headers: Record<string, string>) =>
      fixture.rest('GET', `/payment/status/${String(reference)}`, { headers })
    expect((await ask({ 'Accept-Language': 'fr-ML,en;q=0.5' })).body.message).toContain('pas encore confirmé')
    expect((await ask({ 'Accept-Language': 'en' })).body.message).toContain('not confirmed yet')
  })

  test('it asks the operator and settles a paid payment: state success, status true', async () => {
    const answers = await perOperator(async (operator) => {
      const { reference, transaction_id: id } = await fixture.paid(shop, {
        payment_method: operator,
        customer_phone: customer('09'),
      })
      await fixture.answer(id, 'confirm')
      const body = await eventually(async () => {
        const { body: now } = await fixture.check(reference)
        expect(now['state']).not.toBe('pending')
        return now
      })
      return [body['state'], body['status'], await fixture.statusOf(shop, id)]
    })
    expect(answers).toEqual(each(['success', true, 'success']))
  })

  test('a payment that the operator refuses: state failed, status false', async () => {
    const answers = await perOperator(async (operator) => {
      const { reference, transaction_id: id } = await fixture.paid(shop, {
        payment_method: operator,
        customer_phone: customer('09'),
      })
      await fixture.answer(id, 'decline')
      const body = await eventually(async () => {
        const { body: now } = await fixture.check(reference)
        expect(now['state']).not.toBe('pending')
        return now
      })
      return [body['state'], body['status'], await fixture.statusOf(shop, id)]
    })
    expect(answers).toEqual(each(['failed', false, 'failed']))
  })

  test('a final payment is answered from the record: the operator is asked no more', async () => {
    const { reference, transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('00') })
    await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('success'))
    const name = await fixture.correlationOf(id)
    const before = (await fixture.seen(name)).length
    for (let i = 0; i < 5; i += 1) expect((await fixture.check(reference)).body['state']).toBe('success')
    expect((await fixture.seen(name)).length).toBe(before)
  })

  test('needs no token, and a wrong one is not even looked at', async () => {
    const { reference } = await fixture.paid(shop)
    const path = `/payment/status/${String(reference)}`
    for (const token of [undefined, 'nonsense', shop.token])
      expect((await fixture.rest('GET', path, { token })).status).toBe(200)
  })

  test('never shows an amount, a phone number or an id', async () => {
    const phone = customer('00')
    const { reference, transaction_id: id } = await fixture.paid(shop, {
      amount: 987_654,
      customer_phone: phone,
    })
    const open = await fixture.check(reference)
    await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('success'))
    for (const { body } of [open, await fixture.check(reference)]) {
      expect(Object.keys(body).toSorted()).toEqual(['message', 'state', 'status'])
      expect(JSON.stringify(body)).not.toMatch(/\d/)
    }
  })

  test('404 an unknown reference, in the envelope', async () => {
    const { status, body } = await fixture.check('nobody-knows')
    expect(status).toBe(404)
    expect(body).toMatchObject({
      success: false,
      message: expect.any(String),
      request_id: expect.any(String),
    })
  })

  test('500 an unreachable operator: retry; nothing has failed', async () => {
    const { reference, transaction_id: id } = await fixture.paid(shop, { payment_method: 'OperatorC' })
    await fixture.outage('OperatorC', 'refuse')
    const { status, body } = await fixture.check(reference)
    await fixture.outage('OperatorC', 'none')
    expect(status).toBe(500)
    expect(body).toMatchObject({
      success: false,
      message: expect.any(String),
      request_id: expect.any(String),
    })
    expect(await fixture.statusOf(shop, id)).toBe('pending')
  })
})

describe('several merchants use one reference', () => {
  test('409 without merchant_id; with it, each payment for itself', async () => {
    const other = await fixture.merchant()
    const mine = await fixture.pay(shop, { reference: 'both', customer_phone: customer('03') })
    expect(mine.status).toBe(400)
    await fixture.paid(other, { reference: 'both' })

    const { status, body } = await fixture.check('both')
    expect(status).toBe(409)
    expect(body).toMatchObject({ success: false, message: expect.stringContaining('merchant_id') })
    expect(body).not.toHaveProperty('existing_transaction')
    expect((await fixture.check('both', `?merchant_id=${shop.merchantId}`)).body['state']).toBe('failed')
    expect((await fixture.check('both', `?merchant_id=${other.merchantId}`)).body['state']).toBe('pending')
  })

  test('404 the named merchant has no such reference', async () => {
    const { reference } = await fixture.paid(shop)
    expect((await fixture.check(reference, `?merchant_id=${shop.merchantId + 1000}`)).status).toBe(404)
  })

  test.each(['0', '-1', 'x', '1.5', '', '99999999999'])(
    '400 merchant_id=%s names the parameter',
    async (id) => {
      const { status, body } = await fixture.check('both', `?merchant_id=${id}`)
      expect(status).toBe(400)
      expect(body['errors'][0].field).toBe('merchant_id')
    },
  )
})

describe('races', () => {
  test('at most one operator query per transaction in 3 s, from any number of callers', async () => {
    expect(pauseMs).toBe(3 * second)
    // An hour, in which no machine is too slow for a hundred callers.
    useBounds(claimBounds, { operatorQueryIntervalMs: hour }, onTestFinished)
    const { reference, transaction_id: id } = await fixture.paid(shop)
    const name = await fixture.correlationOf(id)
    const questions = async () =>
      (await fixture.seen(name)).filter(({ path }) => path.endsWith(`/responses/${name}`))

    for (const { body } of await many(100, () => fixture.check(reference)))
      expect(body['state']).toBe('pending')
    for (let i = 0; i < 5; i += 1) await fixture.check(reference)
    expect(await questions()).toHaveLength(1)

    // When the pause is over, one more query is allowed.
    await fixture.database.owner.query(
      'UPDATE operator_request SET query_after = now() WHERE transaction_id = $1',
      [id],
    )
    await many(100, () => fixture.check(reference))
    expect(await questions()).toHaveLength(2)
  })

  test('100 status checks and 20 doubled callbacks: credited once, emitted once, asked once', async () => {
    const before = await fixture.available(shop)
    const { reference, transaction_id: id } = await fixture.paid(shop, {
      amount: 4_321,
      customer_phone: customer('09'),
    })
    const name = await fixture.correlationOf(id)
    const [prompt] = await fixture.seen(name)
    const callback = () =>
      fetch(prompt?.headers['x-callback-url'] ?? '', {
        method: 'PUT',
        headers: { 'content-type': 'application/json', 'x-correlationid': name },
        body: JSON.stringify({
          transactionReference: 'T-1',
          transactionStatus: 'completed',
          amount: '999999',
          currency: 'XOF',
        }),
      }).then((response) => response.status)

    await fixture.answer(id, 'confirm')
    const [checks, callbacks] = await Promise.all([
      Promise.all(Array.from({ length: 100 }, () => fixture.check(reference))),
      Promise.all(Array.from({ length: 20 }, callback)),
    ])
    expect(callbacks).toEqual(Array(20).fill(204))
    for (const { status, body } of checks) {
      expect(status).toBe(200)
      expect(['pending', 'success']).toContain(body['state'])
    }
    await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('success'))
    expect(await callback()).toBe(204)
    expect((await fixture.check(reference)).body['state']).toBe('success')

    expect(await fixture.creditsOf(id)).toEqual([4_321])
    expect(await fixture.eventsOf(id)).toEqual(['payment_pending', 'payment_received'])
    expect(await fixture.available(shop)).toBe(before + 4_321)
    expect((await fixture.seen(name)).filter(({ path }) => path.includes('/responses/'))).toHaveLength(1)
  })

  test('a callback that claims success moves no money by itself', async () => {
    const { transaction_id: id } = await fixture.paid(shop)
    const name = await fixture.correlationOf(id)
    const [prompt] = await fixture.seen(name)
    const response = await fetch(prompt?.headers['x-callback-url'] ?? '', {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ transactionReference: 'T-2', transactionStatus: 'completed', amount: '5000' }),
    })
    expect(response.status).toBe(204)
    // It is a hint: the operator is asked, and answers that the customer has not paid.
    await eventually(async () =>
      expect((await fixture.seen(name)).filter(({ path }) => path.includes('/responses/')).length).toBe(1),
    )
    expect(await fixture.statusOf(shop, id)).toBe('pending')
    expect(await fixture.creditsOf(id)).toEqual([])
  })

  test('a callback to an unknown address is refused', async () => {
    const { transaction_id: id } = await fixture.paid(shop)
    const [prompt] = await fixture.seen(await fixture.correlationOf(id))
    const genuine = prompt?.headers['x-callback-url'] ?? ''
    const forged = genuine.slice(0, -1) + (genuine.endsWith('A') ? 'B' : 'A')
    expect((await fetch(forged, { method: 'PUT', body: '{}' })).status).toBe(403)
  })

  test('a declined payment that is checked and called back at once fails once', async () => {
    const { reference, transaction_id: id } = await fixture.paid(shop, {
      payment_method: 'OperatorB',
      customer_phone: customer('09'),
    })
    await fixture.answer(id, 'decline')
    await Promise.all(Array.from({ length: 30 }, () => fixture.check(reference)))
    await fixture.advance(minute)
    await eventually(async () => expect((await fixture.check(reference)).body['state']).toBe('failed'))
    expect(await fixture.eventsOf(id)).toEqual(['payment_pending', 'payment_failed'])
    expect(await fixture.creditsOf(id)).toEqual([])
  })
})

import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { haltPaymentsOut, resumePaymentsOut } from '../../src/ledger/payments-out.ts'
import type { RestAnswer } from '../kit/app.ts'
import { eventually } from '../kit/eventually.ts'
import { beginPayouts } from '../kit/money-out.ts'
import { day, fieldsOf, payoutsOn } from '../kit/payouts.ts'
import { customer, openFixture } from '../kit/fixture.ts'

const fixture = await openFixture()
const { shop, payOut, ahead, money, record, cancel, emitted, written } = payoutsOn(fixture)
const { pool } = fixture.database.database
const { owner } = fixture.database

const nothing = { payouts: 0, reserves: 0, emitted: 0, requests: 0 }
const made = ({ status, body }: RestAnswer) => {
  expect(body).toMatchObject({ success: true })
  expect(status).toBe(201)
  return body['data'] as Record<string, unknown>
}

describe('POST /payouts', () => {
  test('201 a payout that is pending, with its money set aside', async () => {
    const merchant = await shop(20_000)
    const phone = customer('00')
    const answer = await payOut(merchant, {
      amount: 12_000,
      destination_phone: phone.slice(4),
      reference: 'rent/é 3',
    })
    const data = made(answer)
    expect(data).toEqual({
      id: expect.any(Number),
      amount: 12_000,
      currency: 'XOF',
      payment_method: 'OperatorA',
      destination_phone: phone,
      status: 'pending',
      reference: 'rent/é 3',
      approval: 'not_required',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
    const { available, reserved } = await money(merchant)
    expect(available).toBe(8_000)
    expect([0, 12_000]).toContain(reserved)
    expect((await emitted(data['id']))[0]).toBe('payout_pending')
    const { rows } = await owner.query('SELECT maker, request_data FROM payout WHERE id = $1', [data['id']])
    expect(rows).toEqual([
      {
        maker: expect.stringMatching(/^api_key:\d+$/),
        request_data: {
          amount: 12_000,
          currency: 'XOF',
          payment_method: 'OperatorA',
          destination_phone: phone,
          reference: 'rent/é 3',
        },
      },
    ])
  })

  test('a reference is made where none is given', async () => {
    expect(made(await payOut(await shop()))['reference']).toMatch(/^po_[0-9a-f]{32}$/)
  })

  test.each<[string, object, string[]]>([
    ['under the minimum', { amount: 999 }, ['amount']],
    ['over the maximum', { amount: 100_000_001 }, ['amount']],
    ['a fraction', { amount: 5_000.5 }, ['amount']],
    ['an amount as text', { amount: '5000' }, ['amount']],
    ['no amount', { amount: null }, ['amount']],
    ['another currency', { currency: 'EUR' }, ['currency']],
    ['BankTransfer', { payment_method: 'BankTransfer' }, ['payment_method']],
    ['an unknown method', { payment_method: 'OperatorE' }, ['payment_method']],
    ['a bank account', { destination_account: 'ML013 0123' }, ['destination_account']],
    [
      'a bank account alone',
      { destination_account: 'ML013 0123', destination_phone: null },
      ['destination_account'],
    ],
    ['no number', { destination_phone: null }, ['destination_phone']],
    [
      'no destination at all',
      { payment_method: null, destination_phone: null },
      ['payment_method', 'destination_phone'],
    ],
    ['a number of another country', { destination_phone: '+33612345678' }, ['destination_phone']],
    ['an empty reference', { reference: '' }, ['reference']],
    ['a reference of 101 characters', { reference: 'x'.repeat(101) }, ['reference']],
    ['no time', { scheduled_at: 'tomorrow' }, ['scheduled_at']],
    ['a beneficiary of a wrong type', { beneficiary_id: 1.5 }, ['beneficiary_id']],
    [
      'all of it wrong',
      { amount: 1, payment_method: 'x', destination_phone: '1', reference: '', scheduled_at: 1 },
      ['amount', 'payment_method', 'destination_phone', 'reference', 'scheduled_at'],
    ],
  ])('400 %s, and nothing is recorded', async (_name, body, fields) => {
    const merchant = await shop()
    const answer = await payOut(merchant, body)
    expect(answer.status).toBe(400)
    expect(fieldsOf(answer)).toEqual(fields)
    expect(await written(merchant)).toEqual(nothing)
  })

  test('400 says of banks that they are not yet supported', async () => {
    const merchant = await shop()
    for (const body of [{ payment_method: 'BankTransfer' }, { destination_account: 'ML013 0123' }])
      expect((await payOut(merchant, body)).body['message']).toContain('not yet supported')
  })

  test('400 more than is available, and nothing is recorded', async () => {
    const merchant = await shop(5_999)
    const answer = await payOut(merchant, { amount: 6_000 })
    expect([answer.status, answer.body['success']]).toEqual([400, false])
    expect(answer.body['message']).toContain('available balance')
    expect(await written(merchant)).toEqual(nothing)
    made(await payOut(merchant, { amount: 5_999 }))
  })

  test('400 tells a merchant that owes what it owes', async () => {
    const merchant = await shop(0)
    const { transaction_id: id } = await fixture.paid(merchant, { customer_phone: customer('00') })
    await eventually(async () => expect(await fixture.statusOf(merchant, id)).toBe('success'))
    made(await payOut(merchant))
    await pool.query(`SELECT reverse_many(ARRAY[$1::bigint], '{query}', ARRAY['{}'::jsonb])`, [id])
    const answer = await payOut(merchant)
    expect([answer.status, answer.body['message']]).toEqual([400, expect.stringContaining('owes 5000 XOF')])
  })

  test('of many at once exactly those that are covered are made', async () => {
    const merchant = await shop(10_000)
    const answers = await Promise.all(Array.from({ length: 30 }, () => payOut(merchant, { amount: 1_000 })))
    const statuses = answers.map(({ status }) => status)
    const taken = answers.filter(({ status }) => status === 201)
    // Though the first are paid before the last are answered.
    expect(taken.map(({ body }) => body['data'].status)).toEqual(Array(10).fill('pending'))
    expect(statuses.filter((status) => status === 400)).toHaveLength(20)
    expect(await money(merchant)).toMatchObject({ available: 0 })
  })
})

describe('the reference of a payout', () => {
  test('409 a repeat tells of the payout that has it, and moves nothing', async () => {
    const merchant = await shop()
    const body = { reference: 'once', scheduled_at: ahead(day), destination_phone: customer('00') }
    const { id } = made(await payOut(merchant, body))
    const others = [await payOut(merchant, body, { 'Idempotency-Key': randomUUID() })]
    others.push(await payOut(merchant, body), await payOut(merchant, { ...body, amount: 7_000 }))
    expect(others.map(({ status }) => status)).toEqual([409, 409, 409])
    expect(others[2]?.body).toEqual({
      success: false,
      message: 'A payout with this reference already exists. Use another reference for another payout.',
      request_id: expect.any(String),
      existing_payout: { id, status: 'pending' },
    })
    expect(await money(merchant)).toEqual({ available: 1_000_000, reserved: 0 })
  })

  test('of forty at once one is made', async () => {
    const merchant = await shop()
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => payOut(merchant, { reference: 'race' })),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.toSorted((a, b) => a - b)).toEqual([201, ...Array<number>(39).fill(409)])
    const [first] = answers.filter(({ status }) => status === 201)
    const ids = new Set(answers.map(({ body }) => body['existing_payout']?.id ?? first?.body['data'].id))
    expect(ids.size).toBe(1)
    expect(await written(merchant)).toMatchObject({ payouts: 1, reserves: 1 })
  })

  test('is its own among payouts: a payment or another merchant may have it too', async () => {
    const [one, two] = [await shop(), await shop()]
    await fixture.paid(one, { reference: 'shared' })
    for (const merchant of [one, two]) {
      made(await payOut(merchant, { reference: 'shared' }))
      expect(await written(merchant)).toMatchObject({ payouts: 1 })
    }
  })

  test('of one that was refused it stays free', async () => {
    const merchant = await shop(1_000)
    expect((await payOut(merchant, { reference: 'free', amount: 2_000 })).status).toBe(400)
    made(await payOut(merchant, { reference: 'free', amount: 1_000 }))
  })
})

describe('a payout for a day to come', () => {
  test('201 sets nothing aside yet, and needs no balance', async () => {
    const merchant = await shop(0)
    const at = ahead(366 * day - 60_000)
    const data = made(await payOut(merchant, { scheduled_at: at }))
    expect(data).toMatchObject({ status: 'pending', scheduled_at: at })
    expect(await money(merchant)).toEqual({ available: 0, reserved: 0 })
  })

  test('400 in the past or over 366 days ahead, by the clock of the service', async () => {
    await fixture.advance(day)
    const merchant = await shop()
    for (const at of [ahead(-1), new Date().toISOString(), ahead(366 * day + 60_000), '2020-01-01']) {
      const answer = await payOut(merchant, { scheduled_at: at })
      expect([answer.status, ...fieldsOf(answer)]).toEqual([400, 'scheduled_at'])
    }
    expect(await written(merchant)).toEqual(nothing)
  })
})

describe('while payments out are halted', () => {
  afterEach(() => resumePaymentsOut(pool, 'the test is over'))

  test('503 what goes at once; what is scheduled is taken', async () => {
    const merchant = await shop()
    await haltPaymentsOut(pool, 'a test')
    const answer = await payOut(merchant)
    expect([answer.status, answer.body['success']]).toEqual([503, false])
    expect(await written(merchant)).toEqual(nothing)
    made(await payOut(merchant, { scheduled_at: ahead(day) }))
  })
})

describe('a payout to a beneficiary', () => {
  const save = async (merchant: { token: string }, more: object = {}) => {
    const body = { name: 'Awa Traoré', account: '70 00 99 01', payment_method: 'OperatorC', ...more }
    const answer = await fixture.rest('POST', '/beneficiaries', { token: merchant.token, body })
    expect(answer.status).toBe(201)
    return answer.body['data'].id as number
  }

  test('201 goes where the beneficiary is, and keeps that', async () => {
    const merchant = await shop()
    const id = await save(merchant)
    const data = made(await payOut(merchant, { beneficiary_id: id, scheduled_at: ahead(day) }))
    const paid = { payment_method: 'OperatorC', destination_phone: '+22370009901', beneficiary_id: id }
    expect(data).toMatchObject(paid)
    await fixture.rest('PUT', `/beneficiaries/${id}`, {
      token: merchant.token,
      body: { name: 'Binta', account: '70 00 99 02', payment_method: 'OperatorD' },
    })
    expect(await record(merchant, data['id'])).toMatchObject(paid)
    const { body } = await fixture.graphql(
      '{ payouts { nodes { beneficiaryName beneficiary { databaseId name } } } }',
      {},
      merchant.token,
    )
    expect(body['data'].payouts.nodes).toEqual([
      { beneficiaryName: 'Awa Traoré', beneficiary: { databaseId: id, name: 'Binta' } },
    ])
  })

  test('201 what is given beside it must be the same', async () => {
    const merchant = await shop()
    const id = await save(merchant)
    const same = { beneficiary_id: id, payment_method: 'OperatorC', destination_phone: '+223 70009901' }
    made(await payOut(merchant, same))
    const other = { ...same, payment_method: 'OperatorA', destination_phone: '70009902' }
    const answer = await payOut(merchant, other)
    expect([answer.status, ...fieldsOf(answer)]).toEqual([400, 'payment_method', 'destination_phone'])
  })

  test('400 one that is not active, or has a bank', async () => {
    const merchant = await shop()
    const id = await save(merchant)
    await fixture.rest('PUT', `/beneficiaries/${id}`, { token: merchant.token, body: { is_active: false } })
    const bank = await save(merchant, { account: 'ML013 0123', payment_method: 'BankTransfer' })
    for (const beneficiary of [id, bank]) {
      const answer = await payOut(merchant, { beneficiary_id: beneficiary })
      expect([answer.status, ...fieldsOf(answer)]).toEqual([400, 'beneficiary_id'])
    }
    expect(await written(merchant)).toEqual(nothing)
  })

  test('404 one of another merchant, or of nobody', async () => {
    const merchant = await shop()
    const theirs = await save(await shop())
    for (const id of [theirs, 2_147_483_647, 9_007_199_254_740_991, 'x'])
      expect((await payOut(merchant, { beneficiary_id: id })).status).toBe(404)
    expect(await written(merchant)).toEqual(nothing)
  })

  test('its Idempotency-Key finds what it made, though the beneficiary is inactive since', async () => {
    const merchant = await shop()
    const id = await save(merchant)
    const body = { beneficiary_id: id, scheduled_at: ahead(1_000) }
    const headers = { 'Idempotency-Key': randomUUID() }
    const first = made(await payOut(merchant, body, headers))
    await fixture.rest('PUT', `/beneficiaries/${id}`, { token: merchant.token, body: { is_active: false } })
    await fixture.advance(2_000)
    // The process died before it could keep the answer.
    await owner.query('UPDATE idempotency_key SET answer = NULL, locked_until = now() WHERE key = $1', [
      headers['Idempotency-Key'],
    ])
    expect(made(await payOut(merchant, body, headers))).toMatchObject({
      id: first['id'],
      reference: first['reference'],
    })
    expect(await written(merchant)).toMatchObject({ payouts: 1 })
  })
})

test('a repeat under the same Idempotency-Key is told the same, and pays once', async () => {
  const merchant = await shop()
  const headers = { 'Idempotency-Key': randomUUID() }
  const body = { destination_phone: customer('00') }
  const [first, again] = [await payOut(merchant, body, headers), await payOut(merchant, body, headers)]
  expect(again.headers.get('Idempotent-Replayed')).toBe('true')
  expect([again.status, again.body]).toEqual([first.status, first.body])
  expect((await payOut(merchant, { ...body, amount: 6_000 }, headers)).status).toBe(400)
  expect(await written(merchant)).toMatchObject({ payouts: 1, reserves: 1 })
})

describe('where a merchant asks for approval', () => {
  test('a payout at the threshold waits with its money; one below does not', async () => {
    const merchant = await shop(30_000, { threshold: 10_000 })
    const waits = made(await payOut(merchant, { amount: 10_000 }))
    expect(waits).toMatchObject({ status: 'pending', approval: 'pending' })
    expect(Date.parse(String(waits['approval_expires_at'])) - Date.parse(String(waits['created_at']))).toBe(
      7 * day,
    )
    expect(made(await payOut(merchant, { amount: 9_999 }))).toMatchObject({ approval: 'not_required' })
    expect(await money(merchant)).toMatchObject({ available: 10_001 })
    await beginPayouts(pool)
    expect(await record(merchant, waits['id'])).toMatchObject({ status: 'pending', approval: 'pending' })
  })

  test('nobody decides in seven days: it is cancelled, and the money free again', async () => {
    const merchant = await shop(30_000, { threshold: 0 })
    const { id } = made(await payOut(merchant, { amount: 10_000 }))
    await fixture.advance(7 * day - 60_000)
    await pool.query('SELECT expire_approvals(100)')
    expect(await record(merchant, id)).toMatchObject({ status: 'pending', approval: 'pending' })
    expect(await money(merchant)).toEqual({ available: 20_000, reserved: 10_000 })
    await fixture.advance(60_000)
    await pool.query('SELECT expire_approvals(100)')
    await eventually(async () =>
      expect(await record(merchant, id)).toMatchObject({ status: 'cancelled', approval: 'expired' }),
    )
    expect(await money(merchant)).toEqual({ available: 30_000, reserved: 0 })
    expect(await emitted(id)).toEqual(['payout_pending', 'payout_cancelled'])
  })
})

describe('cancelPayout', () => {
  test('of one that waits: cancelled, its money free again, and told', async () => {
    const merchant = await shop(30_000, { threshold: 0 })
    const { id } = made(await payOut(merchant, { amount: 10_000 }))
    expect(await cancel(merchant, id)).toEqual({
      __typename: 'Payout',
      databaseId: id,
      status: 'CANCELLED',
    })
    expect(await money(merchant)).toEqual({ available: 30_000, reserved: 0 })
    expect(await emitted(id)).toEqual(['payout_pending', 'payout_cancelled'])
    expect(await record(merchant, id)).toMatchObject({ settled_at: expect.any(String) })
    const document = `query ($id: ID) { payout(id: $id) { ledgerEntries { step debit credit amount } } }`
    const { body } = await fixture.graphql(document, { id: String(id) }, merchant.token)
    expect(body['data'].payout.ledgerEntries).toEqual([
      { step: 'RESERVE', debit: 'AVAILABLE', credit: 'RESERVED', amount: 10_000 },
      { step: 'VOID', debit: 'RESERVED', credit: 'AVAILABLE', amount: 10_000 },
    ])
  })

  test('of one that is scheduled: it never begins', async () => {
    const merchant = await shop()
    const { id } = made(await payOut(merchant, { scheduled_at: ahead(day) }))
    expect(await cancel(merchant, id)).toMatchObject({ status: 'CANCELLED' })
    await fixture.advance(2 * day)
    await beginPayouts(pool, 'OperatorA', 512)
    expect(await record(merchant, id)).toMatchObject({ status: 'cancelled' })
    expect(await money(merchant)).toEqual({ available: 1_000_000, reserved: 0 })
  })

  test('STATE_CONFLICT twice, and of one that has begun', async () => {
    const merchant = await shop()
    const waiting = made(await payOut(merchant, { scheduled_at: ahead(day) }))
    await cancel(merchant, waiting['id'])
    const begun = made(await payOut(merchant))
    await beginPayouts(pool, 'OperatorA', 512)
    for (const { id } of [waiting, begun])
      expect(await cancel(merchant, id)).toMatchObject({
        __typename: 'StateConflictError',
        code: 'STATE_CONFLICT',
        message: expect.stringContaining('Only a payout that is pending'),
      })
    expect(await money(merchant)).toMatchObject({ available: 995_000 })
  })

  test('NOT_FOUND for what is not there, or not theirs', async () => {
    const { id } = made(await payOut(await shop(), { scheduled_at: ahead(day) }))
    const stranger = await shop(0)
    for (const other of [id, 999_999_999, 'rubbish', btoa('Transaction:1')])
      expect(await cancel(stranger, other)).toMatchObject({ code: 'NOT_FOUND' })
  })
})

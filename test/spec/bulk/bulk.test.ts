import { expect, test } from 'vitest'
import { bulkOn, row } from '../../kit/bulk.ts'
import { openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture()
const { call, shop, draft, process, cancel, ended, money, emitted } = bulkOn(fixture)

test('201 a draft with its recipients, and nothing set aside', async () => {
  const merchant = await shop(10_000)
  const answer = await call(merchant, 'POST', '', { title: 'Salaires', recipients: [row(), row()] })
  expect(answer.status).toBe(201)
  expect(answer.body['data']).toEqual({
    id: expect.any(Number),
    status: 'draft',
    title: 'Salaires',
    recipient_count: 2,
    total_amount: 4_000,
    currency: 'XOF',
    succeeded_count: 0,
    failed_count: 0,
    cancelled_count: 0,
    paid_amount: 0,
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    processed_at: null,
  })
  expect(await money(merchant)).toEqual({ available: 10_000, reserved: 0 })
})

test('all recipients are paid, and the batch says so once', async () => {
  const merchant = await shop(100_000)
  const id = await draft(
    merchant,
    (['OperatorA', 'OperatorB', 'OperatorC', 'OperatorD'] as const).flatMap((method) =>
      Array.from({ length: 3 }, () => row('00', { payment_method: method })),
    ),
  )
  const answer = await process(merchant, id)
  expect(answer.status).toBe(202)
  expect(answer.body['data']).toMatchObject({ id, status: 'processing', total_amount: 24_000 })
  const end = await ended(merchant, id)
  expect(end).toMatchObject({
    status: 'completed',
    succeeded_count: 12,
    failed_count: 0,
    paid_amount: 24_000,
    processed_at: expect.stringMatching(/Z$/),
  })
  expect(await money(merchant)).toEqual({ available: 76_000, reserved: 0 })
  expect(await emitted(id)).toEqual(['batch_draft', 'batch_processing', 'batch_progress', 'bulk_pay_done'])
})

test('some are paid and some are not: the rest is free again', async () => {
  const merchant = await shop(100_000)
  const id = await draft(merchant, [row('00'), row('03'), row('00', { payment_method: 'OperatorD' })])
  await process(merchant, id)
  expect(await ended(merchant, id)).toMatchObject({
    status: 'partially_completed',
    succeeded_count: 2,
    failed_count: 1,
    paid_amount: 4_000,
  })
  expect(await money(merchant)).toEqual({ available: 96_000, reserved: 0 })
})

test('400 a batch that the balance does not cover stays a draft', async () => {
  const merchant = await shop(3_999)
  const id = await draft(merchant, [row(), row()])
  const answer = await process(merchant, id)
  expect(answer.status).toBe(400)
  expect((await call(merchant, 'GET', `/${id}`)).body['data']).toMatchObject({ status: 'draft' })
  expect(await emitted(id)).toEqual(['batch_draft'])
})

test('a draft is cancelled with all its recipients', async () => {
  const merchant = await shop(10_000)
  const id = await draft(merchant, [row()])
  expect((await cancel(merchant, id)).status).toBe(200)
  expect((await call(merchant, 'GET', `/${id}`)).body['data']).toMatchObject({
    status: 'cancelled',
    cancelled_count: 1,
  })
  expect((await cancel(merchant, id)).status).toBe(409)
  expect((await process(merchant, id)).status).toBe(409)
})

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

test('a draft with more recipients than its shown total is not paid, and nothing is set aside', async () => {
  const merchant = await shop(100_000)
  const id = await draft(merchant, [row()])
  const pay = (more: string) =>
    fixture.graphql(
      `mutation { processBatch(id: "${id}" ${more}) { __typename ... on StateConflictError { message } } }`,
      {},
      merchant.token,
    )
  await call(merchant, 'POST', `/${id}/recipients`, { recipients: [row()] })
  for (const more of ['expectedTotal: 2000', 'expectedTotal: 2000, dryRun: true']) {
    const { body } = await pay(more)
    expect(body['data'].processBatch).toEqual({
      __typename: 'StateConflictError',
      message: 'The total of this batch is 4000 XOF, not 2000 XOF. Read the batch again.',
    })
  }
  for (const body of [{ expected_total: 2_000 }, { expected_total: 2_000, dry_run: true }]) {
    const refused = await call(merchant, 'POST', `/${id}/process`, body)
    expect([refused.status, refused.body.code]).toEqual([409, 'STATE_CONFLICT'])
  }
  const wrong = await call(merchant, 'POST', `/${id}/process`, { expected_total: '4000' })
  expect(wrong.body.errors).toEqual([{ field: 'expected_total', message: 'must be a number' }])
  expect(await money(merchant)).toEqual({ available: 100_000, reserved: 0 })
  expect(await emitted(id)).toEqual(['batch_draft'])
  expect((await pay('expectedTotal: 4000')).body['data'].processBatch).toEqual({ __typename: 'BatchPayload' })
  expect(await ended(merchant, id)).toMatchObject({ status: 'completed', paid_amount: 4_000 })
})

test('recipients that arrive while a draft is paid are paid only where their total was shown', async () => {
  const merchant = await shop(100_000)
  for (let round = 0; round < 12; round += 1) {
    const id = await draft(merchant, [row()])
    const pay = `mutation { processBatch(id: "${id}", expectedTotal: 2000) { __typename } }`
    const [added, paid] = await Promise.all([
      call(merchant, 'POST', `/${id}/recipients`, { recipients: [row()] }),
      fixture.graphql(pay, {}, merchant.token),
    ])
    // The first of the two wins, and the other is refused.
    const isPaid = paid.body['data'].processBatch.__typename === 'BatchPayload'
    expect(added.status === 409).toBe(isPaid)
    const { status, total_amount: total } = (await call(merchant, 'GET', `/${id}`)).body['data']
    expect(status === 'draft').toBe(!isPaid)
    expect(total).toBe(isPaid ? 2_000 : 4_000)
  }
})

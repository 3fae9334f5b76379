import { expect, onTestFinished, test } from 'vitest'
import { haltPaymentsOut, resumePaymentsOut } from '../../../src/ledger/payments-out.ts'
import { limits } from '../../../src/shared/limits.ts'
import type { RestAnswer, TestMerchant } from '../../kit/app.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { openFixture } from '../../kit/fixture.ts'
import { msUntilNoon } from '../../kit/noon.ts'

// Dry runs of bulk pay, and the warnings of real runs.

const fixture = await openFixture()
// A limit of a token is that of a UTC day of the service's clock.
await fixture.advance(msUntilNoon())
const { call, shop, draft, process, cancel, ended, money } = bulkOn(fixture)
const { owner } = fixture.database

/** All rows of a merchant in the database. */
async function rowsOf({ merchantId }: TestMerchant): Promise<unknown> {
  const tables = ['batch', 'batch_recipient', 'ledger_entry', 'event', 'audit_entry', 'operator_request']
  const counts = tables.map(
    (table) => `(SELECT count(*)::int FROM ${table} WHERE merchant_id = $1) AS ${table}`,
  )
  const { rows } = await owner.query(
    `SELECT ${counts.join(', ')}, (SELECT count(*)::int FROM key_spending) AS key_spending,
      (SELECT count(*)::int FROM graphile_worker._private_jobs WHERE key = 'batches.send') AS jobs,
      (SELECT to_jsonb(b) FROM merchant_balance b WHERE merchant_id = $1) AS balance,
      (SELECT jsonb_agg(b ORDER BY id) FROM batch b WHERE merchant_id = $1) AS batches`,
    [merchantId],
  )
  return rows[0]
}

/** Runs an act that must leave no trace. */
async function untouched<T>(merchant: TestMerchant, act: () => Promise<T>): Promise<T> {
  const before = await rowsOf(merchant)
  const result = await act()
  expect(await rowsOf(merchant)).toEqual(before)
  return result
}

test('200 a dry run of a draft gives its preview, and writes nothing', async () => {
  const merchant = await shop(10_000)
  const [awa, unknown] = [row('00'), row('03', { payment_method: 'OperatorD' })]
  const recipients = [awa, unknown, { ...awa, amount: 7_000 }, row('00', { payment_method: 'OperatorB' })]
  const answer = await untouched(merchant, () =>
    call(merchant, 'POST', '?dry_run=true', { title: 'Salaires', recipients }),
  )
  expect(answer.status).toBe(200)
  expect(answer.headers.get('location')).toBeNull()
  expect(answer.body).toEqual({
    success: true,
    request_id: expect.any(String),
    data: {
      recipient_count: 4,
      total_amount: 13_000,
      currency: 'XOF',
      fees: 0,
      available_now: 10_000,
      available_after: -3_000,
      approval_required: false,
      operators: [
        { payment_method: 'OperatorA', recipient_count: 2, total_amount: 9_000 },
        { payment_method: 'OperatorB', recipient_count: 1, total_amount: 2_000 },
        { payment_method: 'OperatorD', recipient_count: 1, total_amount: 2_000 },
      ],
      duplicates: [{ account: `+223${awa.account.slice(-8)}`, recipient_count: 2, total_amount: 9_000 }],
      unknown_numbers: [`+223${unknown.account.slice(-8)}`],
      numbers_checked: 2,
      operators_without_lookup: ['OperatorB'],
      operators_down: [],
      warnings: [
        {
          field: 'recipients[2].account',
          message: 'is the same as that of recipients[0]: both are paid',
        },
      ],
    },
  })
})

test('200 a dry run of processing is the real run, rolled back', async () => {
  const merchant = await shop(10_000)
  const id = await draft(merchant, [row(), row()])
  const dry = await untouched(merchant, () => call(merchant, 'POST', `/${id}/process?dry_run=true`))
  expect(dry.status).toBe(200)
  expect(dry.body['data']).toMatchObject({
    recipient_count: 2,
    total_amount: 4_000,
    available_now: 10_000,
    available_after: 6_000,
    approval_required: false,
  })
  expect((await process(merchant, id)).status).toBe(202)
  await ended(merchant, id)
  expect((await money(merchant)).available).toBe(dry.body['data'].available_after)
})

/** The refusal of the real run and of the dry run: neither leaves a row. */
async function refusalOf(merchant: TestMerchant, path: string, body?: object): Promise<RestAnswer> {
  const dry = await untouched(merchant, () => call(merchant, 'POST', `${path}?dry_run=true`, body))
  const real = await untouched(merchant, () => call(merchant, 'POST', path, body))
  expect({ ...dry.body, request_id: '' }).toEqual({ ...real.body, request_id: '' })
  expect([dry.status, real.body.success]).toEqual([real.status, false])
  return real
}

test('a dry run is refused as the real run would be', async () => {
  const merchant = await shop(3_000)
  const same = async (path: string, body?: object) => (await refusalOf(merchant, path, body)).status
  const short = await draft(merchant, [row(), row()])
  const empty = await draft(merchant, [])
  const over = await draft(merchant, [row()])
  await cancel(merchant, over)
  const strange = await draft(await shop(0), [row()])
  expect(await same(`/${short}/process`)).toBe(400)
  expect(await same(`/${empty}/process`)).toBe(400)
  expect(await same(`/${over}/process`)).toBe(409)
  expect(await same(`/${strange}/process`)).toBe(404)
  expect(await same('/999999/process')).toBe(404)
  expect(await same('', { recipients: [row('00', { amount: 999 })] })).toBe(400)
  const odd = await call(merchant, 'POST', '?dry_run=perhaps', { recipients: [row()] })
  expect(odd.status).toBe(400)
  expect(odd.body['errors']).toEqual([{ field: 'dry_run', message: 'must be true or false' }])
})

test('no recipient is paid beyond the limits of a token, or while payments out are halted', async () => {
  const merchant = await shop(10_000)
  const limited = async (within: object): Promise<TestMerchant> => {
    const { body } = await fixture.rest('POST', '/auth', {
      headers: { 'X-API-Key': merchant.apiKey, 'X-API-Secret': merchant.apiSecret },
      body: { scopes: ['bulk_pay'], limits: within },
    })
    return { ...merchant, token: body['data'].token as string }
  }
  const id = await draft(merchant, [row(), row('00', { payment_method: 'OperatorB', amount: 2_001 })])
  for (const [limit, most] of [
    ['max_per_payment', 2_000],
    ['payment_methods', ['OperatorA', 'OperatorC']],
    ['max_per_day', 4_000],
  ] as const) {
    const { status, body } = await refusalOf(await limited({ [limit]: most }), `/${id}/process`)
    expect([status, body['limit']]).toEqual([403, limit])
  }
  await haltPaymentsOut(owner, 'a test')
  onTestFinished(async () => void (await resumePaymentsOut(owner, 'the test is over')))
  expect((await refusalOf(merchant, `/${id}/process`)).status).toBe(503)
  await resumePaymentsOut(owner, 'the test is over')
  const just = await limited({
    max_per_payment: 2_001,
    payment_methods: ['OperatorA', 'OperatorB'],
    max_per_day: 4_001,
  })
  expect((await process(just, id)).status).toBe(202)
  await ended(merchant, id)
  const next = await draft(merchant, [row()])
  expect((await refusalOf(just, `/${next}/process`)).body['limit']).toBe('max_per_day')
})

test('a batch is paid when the balance covers it to the franc; one franc more is refused', async () => {
  const merchant = await shop(4_000)
  const more = await draft(merchant, [row(), row('00', { amount: 2_001 })])
  const id = await draft(merchant, [row(), row()])
  expect((await refusalOf(merchant, `/${more}/process`)).status).toBe(400)
  const dry = await untouched(merchant, () => call(merchant, 'POST', `/${id}/process?dry_run=true`))
  expect(dry.body['data']).toMatchObject({ available_now: 4_000, available_after: 0 })
  expect((await process(merchant, id)).status).toBe(202)
  await ended(merchant, id)
  expect(await money(merchant)).toEqual({ available: 0, reserved: 0 })
})

test('a dry run in the query or in the body is a dry run: the batch is not processed', async () => {
  const merchant = await shop(10_000)
  const id = await draft(merchant, [row()])
  const variants: [path: string, body: object][] = [
    ['', { dry_run: true }],
    ['?dry_run=false', { dry_run: true }],
    ['?dry_run=true', { dry_run: false }],
  ]
  for (const [query, body] of variants) {
    const act = (path: string) =>
      untouched(merchant, () => call(merchant, 'POST', path + query, { recipients: [row()], ...body }))
    expect([(await act('')).status, (await act(`/${id}/process`)).status]).toEqual([200, 200])
  }
  for (const path of ['', `/${id}/process`]) {
    const odd = await untouched(merchant, () => call(merchant, 'POST', path, { dry_run: 1 }))
    expect(odd.body['errors']).toEqual([{ field: 'dry_run', message: 'must be true or false' }])
  }
})

test('a dry run says that people must approve', async () => {
  const merchant = await shop(10_000)
  await owner.query(
    'UPDATE merchant SET payouts_require_approval = true, approval_threshold = 4000 WHERE id = $1',
    [merchant.merchantId],
  )
  const asksOperators = async (path: string, body?: object) =>
    (await untouched(merchant, () => call(merchant, 'POST', path, body))).body['data'].approval_required
  const two = [row(), row()]
  expect(await asksOperators('?dry_run=true', { recipients: two })).toBe(true)
  expect(await asksOperators('?dry_run=true', { recipients: [row()] })).toBe(false)
  expect(await asksOperators(`/${await draft(merchant, two)}/process?dry_run=true`)).toBe(true)
  expect(await asksOperators(`/${await draft(merchant, [row()])}/process?dry_run=true`)).toBe(false)
})

test('a dry run does not use its Idempotency-Key up', async () => {
  const merchant = await shop(10_000)
  const headers = { 'Idempotency-Key': 'salaries-november' }
  const body = { recipients: [row()] }
  const dry = () => untouched(merchant, () => call(merchant, 'POST', '?dry_run=true', body, headers))
  expect((await dry()).status).toBe(200)
  expect((await dry()).headers.get('idempotent-replayed')).toBeNull()
  const made = await call(merchant, 'POST', '', body, headers)
  expect(made.status).toBe(201)
  const again = await call(merchant, 'POST', '', body, headers)
  expect(again.headers.get('idempotent-replayed')).toBe('true')
  expect(again.body).toEqual(made.body)
})

test('a dry run uses nothing of the daily limit of its token', async () => {
  const merchant = await shop(10_000)
  const { body } = await fixture.rest('POST', '/auth', {
    headers: { 'X-API-Key': merchant.apiKey, 'X-API-Secret': merchant.apiSecret },
    body: { scopes: ['bulk_pay'], limits: { max_per_day: 3_000 } },
  })
  const limited = { ...merchant, token: body['data'].token as string }
  const id = await draft(merchant, [row()])
  const dry = () => untouched(merchant, () => call(limited, 'POST', `/${id}/process?dry_run=true`))
  expect([(await dry()).status, (await dry()).status]).toEqual([200, 200])
  const much = await draft(merchant, [row(), row()])
  const beyond = await untouched(merchant, () => call(limited, 'POST', `/${much}/process?dry_run=true`))
  expect(beyond.body).toMatchObject({ success: false, limit: 'max_per_day' })
  expect((await process(limited, id)).status).toBe(202)
  await ended(merchant, id)
})

test('a dry run names the operators that are down', async () => {
  const merchant = await shop(100_000)
  await fixture.outage('OperatorC', '5xx')
  await Promise.all(Array.from({ length: 20 }, () => fixture.pay(merchant, { payment_method: 'OperatorC' })))
  expect(fixture.app.services.operators.find('OperatorC')?.availability('disburse')).toBe('down')
  const { body } = await call(merchant, 'POST', '?dry_run=true', {
    recipients: [row(), row('03', { payment_method: 'OperatorC' })],
  })
  expect(body['data']).toMatchObject({ operators_down: ['OperatorC'], unknown_numbers: [] })
  await fixture.outage('OperatorC', 'none')
})

test('a dry run asks each operator about a limited number of accounts', async () => {
  const merchant = await shop(0)
  const recipients = Array.from({ length: limits.dryRunLookupsMax + 20 }, () => row())
  const { body } = await call(merchant, 'POST', '?dry_run=true', { recipients })
  expect(body['data']).toMatchObject({ numbers_checked: limits.dryRunLookupsMax, unknown_numbers: [] })
})

test('repeated accounts are accepted with a warning', async () => {
  const merchant = await shop(0)
  const [awa, binta, cheick] = [row(), row(), row()]
  const made = await call(merchant, 'POST', '', { recipients: [awa, binta, awa] })
  expect(made.status).toBe(201)
  const same = (index: number, words: string) => ({
    field: `recipients[${index}].account`,
    message: `${words}: both are paid`,
  })
  expect(made.body['data'].warnings).toEqual([same(2, 'is the same as that of recipients[0]')])
  const { id } = made.body['data']
  const added = await call(merchant, 'POST', `/${id}/recipients`, {
    recipients: [cheick, binta, cheick, row(), binta],
  })
  expect(added.status).toBe(200)
  expect(added.body['data'].warnings).toEqual([
    same(1, 'is in the batch already'),
    same(2, 'is the same as that of recipients[0]'),
    same(4, 'is the same as that of recipients[1]'),
  ])
  const quiet = await call(merchant, 'POST', `/${id}/recipients`, { recipients: [row()] })
  expect(quiet.body['data']).not.toHaveProperty('warnings')
  const { body } = await fixture.graphql(
    'query ($id: ID!) { batch(id: $id) { duplicates { account recipientCount totalAmount } } }',
    { id },
    merchant.token,
  )
  const times = ({ account }: { account: string }, n: number) => ({
    account: `+223${account.slice(-8)}`,
    recipientCount: n,
    totalAmount: n * 2_000,
  })
  expect(body['data'].batch.duplicates).toEqual([times(awa, 2), times(binta, 3), times(cheick, 2)])
})

test('in GraphQL a dry run is an argument, and its refusals are typed', async () => {
  const merchant = await shop(3_000)
  const id = await draft(merchant, [row(), row()])
  const dry = (document: string, variables: object) =>
    untouched(merchant, () => fixture.graphql(document, variables, merchant.token))
  const made = await dry(
    `mutation ($input: CreateBatchInput!) { createBatch(input: $input, dryRun: true) {
      ... on BatchPayload { batch { id } warnings { field }
        dryRun { totalAmount availableAfter operators { paymentMethod } } } } }`,
    { input: { recipients: [{ name: 'Awa', account: '70000001', amount: 4_000 }] } },
  )
  expect(made.body['data'].createBatch).toEqual({
    batch: null,
    warnings: [],
    dryRun: { totalAmount: 4_000, availableAfter: -1_000, operators: [{ paymentMethod: 'OperatorA' }] },
  })
  const processed = await dry(
    `mutation ($id: ID!, $dry: Boolean) { processBatch(id: $id, dryRun: $dry) { __typename } }`,
    { id, dry: true },
  )
  expect(processed.body['data'].processBatch).toEqual({ __typename: 'InsufficientBalanceError' })
})

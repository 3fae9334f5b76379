import { expect, test } from 'vitest'
import type { Provider } from '../../../src/shared/providers.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { openFixture } from '../../kit/fixture.ts'

// The input that bulk pay accepts and refuses (see docs/design/rules.md).

const fixture = await openFixture({ NUMBER_RANGES: '7=OperatorA, 66=OperatorB, 6=OperatorC' })
const { call, shop, draft, process, cancel, ended } = bulkOn(fixture)
const merchant = await shop(100_000)

async function counts(): Promise<unknown> {
  const { rows } = await fixture.database.owner.query(
    `SELECT (SELECT count(*)::int FROM batch) AS batches,
      (SELECT count(*)::int FROM batch_recipient) AS recipients,
      (SELECT count(*)::int FROM event WHERE type LIKE 'batch%') AS events`,
  )
  return rows[0]
}

/** Creates and adds; both must be refused and leave no row. @returns the problems */
async function problemsOf(body: unknown): Promise<{ field: string; message: string }[]> {
  const id = await draft(merchant, [])
  const before = await counts()
  const made = await fixture.rest('POST', '/bulk/batches', { token: merchant.token, body })
  const added = await fixture.rest('POST', `/bulk/batches/${id}/recipients`, { token: merchant.token, body })
  expect([made.status, added.status]).toEqual([400, 400])
  expect(added.body['errors']).toEqual(made.body['errors'])
  expect(await counts()).toEqual(before)
  return made.body['errors']
}

const money = 'must be a whole number of francs: XOF has no minor unit'
const number = 'must be a mobile number in Mali'
const operators = 'must be one of OperatorA, OperatorB, OperatorC, OperatorD'

test.each<[field: string, value: unknown, message: string]>([
  ['amount', 999, 'must be at least 1000 XOF'],
  ['amount', 0, 'must be at least 1000 XOF'],
  ['amount', -5_000, 'must be at least 1000 XOF'],
  ['amount', 100_000_001, 'must be at most 100000000 XOF'],
  ['amount', 1e300, 'must be at most 100000000 XOF'],
  ['amount', '5000', 'must be a number'],
  ['amount', 1_000.5, money],
  ['amount', true, 'must be a number'],
  ['amount', null, 'is required'],
  ['amount', undefined, 'is required'],
  ['payment_method', 'OperatorZ', operators],
  ['payment_method', 'operatorA', `${operators}: write OperatorA, not "operatorA"`],
  ['payment_method', 7, operators],
  ['payment_method', 'BankTransfer', 'BankTransfer is not yet supported'],
  ['account', '12345', number],
  ['account', '+33612345678', number],
  ['account', '7000000', number],
  ['account', '700000011', number],
  ['account', '', number],
  ['account', 70_000_001, 'must be text'],
  ['account', undefined, 'is required'],
  ['account', '7'.repeat(33), 'must have at most 32 characters'],
  ['name', '', 'must not be empty'],
  ['name', '  ', 'must not be empty'],
  ['name', undefined, 'is required'],
  ['name', 5, 'must be text'],
  ['name', 'é'.repeat(201), 'must have at most 200 characters'],
  ['name', 'Awa\u200bTraoré', 'must not contain control or hidden characters'],
  ['name', 'Awa\nTraoré', 'must not contain control or hidden characters'],
])('400 %s %j %s', async (field, value, message) => {
  const wrong = { ...row(), [field]: value }
  expect(await problemsOf({ recipients: [row(), wrong] })).toEqual([
    { field: `recipients[1].${field}`, message },
  ])
})

test.each([['Awa'], [null], [7], [[]], [true]])('400 an entry that is no object: %j', async (entry) => {
  expect(await problemsOf({ recipients: [row(), entry] })).toEqual([
    { field: 'recipients[1]', message: 'must be an object' },
  ])
})

test.each([['Awa'], [{}], [7], [true]])('400 recipients that are no list: %j', async (recipients) => {
  expect(await problemsOf({ recipients })).toEqual([{ field: 'recipients', message: 'must be a list' }])
})

test('every problem of every entry is listed, the first hundred', async () => {
  const all = await problemsOf({ recipients: [{ amount: 1 }, row(), { name: 'Awa' }] })
  expect(all.map(({ field }) => field)).toEqual([
    'recipients[0].name',
    'recipients[0].account',
    'recipients[0].amount',
    'recipients[2].account',
    'recipients[2].amount',
  ])
  const low = row('00', { amount: 1 })
  const many = await problemsOf({ recipients: Array.from({ length: 10_000 }, () => low) })
  expect(many.map(({ field }) => field)).toEqual(
    Array.from({ length: 100 }, (_, index) => `recipients[${index}].amount`),
  )
})

test('problems of the batch are listed with problems of its recipients', async () => {
  const wrong = { title: 5, payment_method: 'x', currency: 'EUR', recipients: [row('00', { amount: 1 })] }
  const { status, body } = await call(merchant, 'POST', '', wrong)
  expect(status).toBe(400)
  expect(body['errors'].map(({ field }: { field: string }) => field).toSorted()).toEqual([
    'currency',
    'payment_method',
    'recipients[0].amount',
    'title',
  ])
  const { body: answer } = await fixture.graphql(
    `mutation ($input: CreateBatchInput!) { createBatch(input: $input) {
      ... on InvalidInputError { problems { field } } } }`,
    { input: { title: '', recipients: [{ name: '', account: '70000001', amount: 1_000 }] } },
    merchant.token,
  )
  expect(answer['data'].createBatch.problems).toEqual([{ field: 'title' }, { field: 'recipients[0].name' }])
})

test('400 a currency other than XOF, of the call or of one of its recipients', async () => {
  const message = 'must be XOF'
  expect(await problemsOf({ currency: 'EUR', recipients: [row()] })).toEqual([{ field: 'currency', message }])
  expect(await problemsOf({ recipients: [{ ...row(), currency: 'EUR' }] })).toEqual([
    { field: 'recipients[0].currency', message },
  ])
  const francs = { currency: 'XOF', recipients: [{ ...row(), currency: 'XOF' }] }
  expect((await call(merchant, 'POST', '', francs)).status).toBe(201)
})

test('201 a draft may begin empty, and accepts values at their limits', async () => {
  for (const body of [{}, { recipients: [] }, { recipients: null }]) {
    const { status, body: answer } = await call(merchant, 'POST', '', body)
    expect(status).toBe(201)
    expect(answer['data']).toMatchObject({ recipient_count: 0, total_amount: 0 })
  }
  const edges = [
    row('00', { amount: 1_000, name: 'é'.repeat(200) }),
    row('00', { amount: 100_000_000, account: '00223 70-00-00-09' }),
  ]
  expect((await call(merchant, 'POST', '', { recipients: edges })).body['data']).toMatchObject({
    recipient_count: 2,
    total_amount: 100_001_000,
  })
})

test('adding needs the field recipients, but accepts an empty list', async () => {
  const id = await draft(merchant, [row()])
  const missing = await call(merchant, 'POST', `/${id}/recipients`, {})
  expect(missing.status).toBe(400)
  expect(missing.body['errors']).toEqual([{ field: 'recipients', message: 'is required' }])
  const none = await call(merchant, 'POST', `/${id}/recipients`, { recipients: [] })
  expect(none.status).toBe(200)
  expect(none.body['data']).toMatchObject({ recipient_count: 1 })
})

test('409 recipients are added to a draft only; 404 to an unknown batch', async () => {
  const add = (id: unknown) => call(merchant, 'POST', `/${String(id)}/recipients`, { recipients: [row()] })
  const cancelled = await draft(merchant, [row()])
  await cancel(merchant, cancelled)
  const paid = await draft(merchant, [row()])
  await process(merchant, paid)
  const strange = await draft(await shop(0), [row()])
  expect((await add(cancelled)).status).toBe(409)
  expect((await add(paid)).status).toBe(409)
  await ended(merchant, paid)
  expect((await add(paid)).status).toBe(409)
  expect((await add(strange)).status).toBe(404)
  expect((await add(999_999)).status).toBe(404)
  for (const act of [process, cancel]) {
    expect((await act(merchant, strange)).status).toBe(404)
    expect((await act(merchant, 999_999)).status).toBe(404)
    expect((await act(merchant, 'salaries')).status).toBe(400)
  }
})

test('400 processing without recipients: the draft stays one', async () => {
  const id = await draft(merchant, [])
  const answer = await process(merchant, id)
  expect(answer.status).toBe(400)
  expect(answer.body['errors']).toEqual([{ field: 'recipients', message: 'must not be empty' }])
  expect((await call(merchant, 'POST', `/${id}/recipients`, { recipients: [row()] })).status).toBe(200)
})

test('of two callers that process one batch at once one does, and the other gets the conflict', async () => {
  const rich = await shop(100_000)
  const id = await draft(rich, [row(), row()])
  const answers = await Promise.all([process(rich, id), process(rich, id), process(rich, id)])
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([202, 409, 409])
  expect(await ended(rich, id)).toMatchObject({ status: 'completed', paid_amount: 4_000 })
})

test('money reserved for a batch is not available to a payout', async () => {
  const rich = await shop(5_000)
  const id = await draft(rich, [row('21'), row('21')])
  expect((await process(rich, id)).status).toBe(202)
  const pay = (amount: number) =>
    fixture.rest('POST', '/payouts', {
      token: rich.token,
      body: { amount, destination_phone: '70110000', payment_method: 'OperatorA' },
    })
  expect((await pay(1_001)).status).toBe(400)
  expect((await pay(1_000)).status).toBe(201)
  expect((await process(rich, await draft(rich, [row('00', { amount: 1_000 })]))).status).toBe(400)
})

test('the minimum holds in GraphQL too', async () => {
  const recipients = [{ name: 'Awa', account: '70000001', amount: 999, paymentMethod: 'OperatorA' }]
  const refused = `... on InvalidInputError { problems { field message } }`
  const { body } = await fixture.graphql(
    `mutation ($input: CreateBatchInput!, $id: ID!, $recipients: [RecipientInput!]!) {
      createBatch(input: $input) { ${refused} }
      addRecipients(id: $id, recipients: $recipients) { ${refused} } }`,
    { input: { recipients }, id: await draft(merchant, []), recipients },
    merchant.token,
  )
  const problems = [{ field: 'recipients[0].amount', message: 'must be at least 1000 XOF' }]
  expect(body['data']).toEqual({ createBatch: { problems }, addRecipients: { problems } })
})

test('the operator is that of the recipient, the batch, a beneficiary or the number, in turn', async () => {
  const save = async (of: TestMerchant, account: string, method: string) => {
    const { status, body } = await fixture.rest('POST', '/beneficiaries', {
      token: of.token,
      body: { name: 'Awa', account, payment_method: method },
    })
    expect(status).toBe(201)
    return body['data'].id as number
  }
  const kept = '70550001'
  const left = '70550002'
  await save(merchant, kept, 'OperatorB')
  await save(merchant, kept, 'OperatorD')
  const last = await save(merchant, kept, 'OperatorC')
  await fixture.rest('PUT', `/beneficiaries/${last}`, { token: merchant.token, body: { is_active: false } })
  await save(await shop(0), left, 'OperatorB')
  const methodOf = async (account: string, own?: Provider, usual?: Provider) => {
    const answer = await call(merchant, 'POST', '?dry_run=true', {
      payment_method: usual,
      recipients: [{ name: 'Awa', account, amount: 1_000, payment_method: own }],
    })
    return answer.status === 200 ? answer.body['data'].operators[0].payment_method : answer.body['errors']
  }
  expect(await methodOf(kept, 'OperatorA', 'OperatorC')).toBe('OperatorA')
  expect(await methodOf(kept, undefined, 'OperatorC')).toBe('OperatorC')
  expect(await methodOf(kept)).toBe('OperatorD')
  expect(await methodOf(left)).toBe('OperatorA')
  expect(await methodOf('66000001')).toBe('OperatorB')
  expect(await methodOf('65000001')).toBe('OperatorC')
  expect(await methodOf('90000001')).toEqual([
    { field: 'recipients[0].payment_method', message: 'is required: the number suggests no operator' },
  ])
  // A draft with an operator of its own gives it to recipients that are added later.
  const id = await draft(merchant, [], { payment_method: 'OperatorD' })
  expect(
    (await call(merchant, 'POST', `/${id}/recipients`, { recipients: [{ ...row(), payment_method: null }] }))
      .status,
  ).toBe(200)
  const { body } = await call(merchant, 'POST', `/${id}/process?dry_run=true`)
  expect(body['data'].operators).toMatchObject([{ payment_method: 'OperatorD' }])
})

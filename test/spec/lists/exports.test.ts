import { beforeAll, describe, expect, test } from 'vitest'
import { scopes } from '../../../src/identity/callers/scopes.ts'
import { exportNames } from '../../../src/http/exports.ts'
import { fundMerchant } from '../../../src/resources/merchants/fund.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture()
let shop: TestMerchant
const paid: Record<string, unknown>[] = []
const hasAvailable = (amount: number) =>
  eventually(async () => expect(await fixture.available(shop)).toBe(amount))

beforeAll(async () => {
  shop = await fixture.merchant()
  await fundMerchant(fixture.app.services, shop.merchantId, { amount: 10_000 })
  for (const reference of ['=1+1', 'a,"b"', 'c'])
    paid.push(await fixture.paid(shop, { amount: 500, customer_phone: customer('00'), reference }))
  await hasAvailable(11_500)
})

const fetchExport = (name: string, { token = shop.token, method = 'GET' } = {}) =>
  fetch(`${fixture.url}/merchant/api/exports/${name}`, {
    method,
    headers: { Authorization: `Bearer ${token}` },
  })
/** The lines of an export, split at commas: only where no field has one. */
async function linesOf(name: string, token = shop.token): Promise<string[][]> {
  const response = await fetchExport(name, { token })
  expect(response.status).toBe(200)
  const text = await response.text()
  expect(text.endsWith('\r\n')).toBe(true)
  return text
    .slice(0, -2)
    .split('\r\n')
    .map((line) => line.split(','))
}

describe('transactions.csv', () => {
  test('all rows, oldest first, as a file with a line of titles', async () => {
    const response = await fetchExport('transactions.csv')
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present')
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="transactions.csv"')
    const [head, ...rows] = (await response.text()).split('\r\n')
    expect(head?.split(',').slice(0, 6)).toEqual([
      'id',
      'transaction_type',
      'payment_method',
      'customer_phone',
      'amount',
      'settled_amount',
    ])
    expect(rows.map((row) => Number.parseInt(row, 10))).toEqual([
      ...paid.map(({ transaction_id: id }) => id),
      Number.NaN,
    ])
    expect(rows[0]).toMatch(/^\d+,pay,OperatorA,\+223\d{8},500,500,XOF,success,'=1\+1,/)
    expect(rows[1]).toContain(',"a,""b""",')
  })

  test('with the filters of the list', async () => {
    expect(await linesOf('transactions.csv?reference=c')).toHaveLength(2)
    expect(await linesOf('transactions.csv?status=failed')).toHaveLength(1)
  })

  test('of the caller alone', async () => {
    const other = await fixture.merchant()
    expect(await linesOf('transactions.csv', other.token)).toHaveLength(1)
  })
})

test('payouts.csv: the filtered payouts, with amount and beneficiary', async () => {
  const merchant = await fixture.merchant()
  await fundMerchant(fixture.app.services, merchant.merchantId, { amount: 10_000 })
  const call = async (path: string, body: object) =>
    (await fixture.rest('POST', path, { token: merchant.token, body })).body['data'].id as number
  const account = customer('00')
  const saved = { name: '=Awa', account, payment_method: 'OperatorA' }
  const beneficiary = await call('/beneficiaries', saved)
  const first = await call('/payouts', { amount: 1_000, beneficiary_id: beneficiary })
  const second = await call('/payouts', {
    amount: 2_000,
    payment_method: 'OperatorB',
    destination_phone: customer('00'),
  })
  const [head = [], ...rows] = await linesOf('payouts.csv', merchant.token)
  expect(rows.map((row) => Number(row[0]))).toEqual([first, second])
  const cells = Object.fromEntries(head.map((name, index) => [name, rows[0]?.[index]]))
  expect(cells).toMatchObject({
    destination_phone: account,
    amount: '1000',
    beneficiary_id: String(beneficiary),
    beneficiary_name: "'=Awa",
    approval: 'not_required',
  })
  const filtered = await linesOf(`payouts.csv?beneficiary_id=${beneficiary}`, merchant.token)
  expect(filtered.slice(1).map((row) => Number(row[0]))).toEqual([first])
  expect(await linesOf('payouts.csv?payment_method=BankTransfer', merchant.token)).toHaveLength(1)
  const { body } = await fixture.graphql(
    '{ payouts { nodes { databaseId ledgerEntries { step amount } } } }',
    {},
    merchant.token,
  )
  const reserves = body['data'].payouts.nodes.map(
    ({ ledgerEntries }: { ledgerEntries: { step: string; amount: number }[] }) => ledgerEntries[0],
  )
  expect(reserves).toEqual([
    { step: 'RESERVE', amount: 2_000 },
    { step: 'RESERVE', amount: 1_000 },
  ])
})

describe('statement.csv', () => {
  test('opening, every change with the balance after it, closing', async () => {
    const [head, ...rows] = await linesOf('statement.csv?from=2020-01-01')
    expect(head?.slice(0, 3)).toEqual(['created_at', 'entry_id', 'step'])
    const cells = rows.map((row) => [row[2], row[5], row[8]])
    expect(cells).toEqual([
      ['opening', '', '0'],
      ['fund', '10000', '10000'],
      ['credit', '500', '10500'],
      ['credit', '500', '11000'],
      ['credit', '500', '11500'],
      ['closing', '', '11500'],
    ])
    const subjects = rows.map((row) => Number(row[3])).filter((id) => id > 0)
    expect(new Set(subjects)).toEqual(new Set(paid.map(({ transaction_id: id }) => id)))
  })

  test('to a date it has all changes of that day', async () => {
    const at = (await linesOf('statement.csv?from=2020-01-01')).slice(2, -1).map(([time = '']) => time)
    const days = at.map((time) => time.slice(0, 10))
    const period = await linesOf(`statement.csv?from=${days.at(0)}&to=${days.at(-1)}`)
    expect(period.slice(2, -1).map(([time]) => time)).toEqual(at)
  })

  test('the statement of another merchant shows none of these changes', async () => {
    const other = await fixture.merchant()
    const [, opening, closing] = await linesOf('statement.csv?from=2020-01-01', other.token)
    expect([opening?.[8], closing?.[8]]).toEqual(['0', '0'])
  })
})

describe('an error is answered in the envelope, before any row is sent', () => {
  test.each<[string, string, number, string | null]>([
    ['an unknown filter', 'transactions.csv?status=lost', 400, 'status'],
    ['an end before the beginning', 'statement.csv?from=2026-02-01&to=2026-01-01', 400, 'to'],
    ['a beginning to come, without an end', 'statement.csv?from=9999-01-01', 400, 'from'],
    ['an unknown table', 'merchants.csv', 404, null],
    ['a name that every JavaScript object has', 'constructor.csv', 404, null],
  ])('%s', async (_what, name, status, field) => {
    const response = await fetchExport(name)
    const body = (await response.json()) as { success: boolean; errors?: { field: string }[] }
    expect([response.status, body.success, body.errors?.[0]?.field ?? null]).toEqual([status, false, field])
  })

  test('without a beginning: the error names it as required', async () => {
    const response = await fetchExport('statement.csv')
    expect([response.status, await response.json()]).toMatchObject([400, { message: 'from is required.' }])
  })

  test('without a token: 401; without the scope balance: 403; another method: 405', async () => {
    expect((await fetchExport('transactions.csv', { token: 'x' })).status).toBe(401)
    const { body } = await fixture.rest('POST', '/auth', {
      headers: { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret },
      body: { scopes: ['pay', 'payout'] },
    })
    const refused = await fetchExport('transactions.csv', { token: body['data'].token })
    expect([refused.status, await refused.json()]).toMatchObject([403, { required_scopes: ['balance'] }])
    const posted = await fetchExport('transactions.csv', { method: 'POST' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    const head = await fetchExport('transactions.csv', { method: 'HEAD' })
    expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([
      200,
      'text/csv; charset=utf-8; header=present',
      '',
    ])
  })
})

test.each(exportNames)('%s.csv begins with the mark by which Excel knows UTF-8', async (name) => {
  const recipients = [{ name: 'Awa', account: customer('00'), amount: 5_000, payment_method: 'OperatorA' }]
  const body = { title: 'Paie', recipients }
  const batch = await fixture.rest('POST', '/bulk/batches', { token: shop.token, body })
  const options: Record<string, string> = {
    statement: '?from=2026-01-01',
    recipients: `?batch_id=${batch.body['data'].id}`,
  }
  const response = await fetchExport(`${name}.csv${options[name] ?? ''}`)
  const bytes = Buffer.from(await response.arrayBuffer())
  expect([response.status, bytes.subarray(0, 3).toString('hex')]).toEqual([200, 'efbbbf'])
})

describe('an export takes the scope of its rows', () => {
  /** The same in GraphQL: a refusal there is a refusal here. */
  const reads: Readonly<Record<string, string>> = {
    transactions: '{ transactions(first: 1) { nodes { id } } }',
    payouts: '{ payouts(first: 1) { nodes { id } } }',
    statement:
      '{ statement(from: "2020-01-01T00:00:00Z") { lines(first: 1) { nodes { step: entry { step } } } } }',
    recipients: '{ batches(first: 1) { nodes { recipients(first: 1) { nodes { id } } } } }',
  }
  const queries: Readonly<Record<string, string>> = {
    statement: '?from=2020-01-01',
    recipients: '?batch_id=',
  }
  let merchant: TestMerchant
  let batchId: number

  beforeAll(async () => {
    merchant = await fixture.merchant()
    const made = await fixture.rest('POST', '/bulk/batches', { token: merchant.token, body: { title: 'x' } })
    batchId = made.body['data'].id
  })

  test('every export has a read in GraphQL to compare with', () => {
    expect(exportNames).toEqual(Object.keys(reads))
  })

  test.each(scopes)('a token with the scope %s alone', async (scope) => {
    const { body } = await fixture.rest('POST', '/auth', {
      headers: { 'X-API-Key': merchant.apiKey, 'X-API-Secret': merchant.apiSecret },
      body: { scopes: [scope] },
    })
    const { token } = body['data']
    const byGraphql: Record<string, unknown> = {}
    const byExport: Record<string, unknown> = {}
    for (const name of exportNames) {
      const read = await fixture.graphql(reads[name] ?? '', {}, token)
      const [error] = read.body['errors'] ?? []
      byGraphql[name] = error ? [error.extensions.code, error.extensions.requiredScopes] : 'open'
      const parameters = (queries[name] ?? '') + (name === 'recipients' ? batchId : '')
      const response = await fetchExport(`${name}.csv${parameters}`, { token })
      const text = await response.text()
      byExport[name] = response.ok ? 'open' : ['FORBIDDEN', JSON.parse(text).required_scopes]
    }
    expect(byExport).toEqual(byGraphql)
  })
})

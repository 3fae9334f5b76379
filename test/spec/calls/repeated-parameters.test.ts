import { beforeAll, describe, expect, test } from 'vitest'
import type { TestMerchant } from '../../kit/app.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

// Readers of HTTP differ in the value that they take of a repeated parameter. So a list takes all values, any
// dry run wins, and everything else is refused. No request that asks for a dry run moves money.

const fixture = await openFixture()
const { call, shop, draft } = bulkOn(fixture)
let merchant: TestMerchant
let id: number
beforeAll(async () => {
  merchant = await shop(100_000)
  id = await draft(merchant, [row()])
})

const problemOf = (body: object) => (body as { errors: unknown[] }).errors

/** The number of rows that a write makes, and the status of the draft. */
async function written(): Promise<unknown> {
  const { rows } = await fixture.database.owner.query(
    `SELECT (SELECT count(*) FROM batch) AS batches, (SELECT count(*) FROM payout) AS payouts,
       (SELECT count(*) FROM transaction) AS transactions, (SELECT count(*) FROM audit_entry) AS entries,
       (SELECT status FROM batch WHERE id = $1) AS status`,
    [id],
  )
  return rows[0]
}

describe('a dry run', () => {
  const body = { recipients: [row()] }
  test.each(['?dry_run=true&dry_run=false', '?dry_run=false&dry_run=true', '?dry_run=true&dry_run=true'])(
    'that one of several parameters asks for is one: %s',
    async (parameters) => {
      const before = await written()
      expect((await call(merchant, 'POST', `/${id}/process${parameters}`)).status).toBe(200)
      expect((await call(merchant, 'POST', parameters, body)).status).toBe(200)
      expect(await written()).toEqual(before)
    },
  )

  test('with a second value that is neither true nor false is refused', async () => {
    const before = await written()
    for (const parameters of ['?dry_run=true&dry_run=', '?dry_run=yes&dry_run=false', '?dry_run']) {
      const { status, body: answer } = await call(merchant, 'POST', `/${id}/process${parameters}`)
      const problems = [{ field: 'dry_run', message: 'must be true or false' }]
      expect({ parameters, status, problems: problemOf(answer) }).toEqual({
        parameters,
        status: 400,
        problems,
      })
    }
    expect(await written()).toEqual(before)
  })

  test.each(['dryRun', 'dry-run', 'DRY_RUN', 'dryrun', 'dry_run[]', 'dry_run ', 'Dry Run'])(
    'under the name "%s" is refused, in the address, the body and a form',
    async (name) => {
      const before = await written()
      const parameters = `?${new URLSearchParams({ [name]: 'true' })}`
      const form = new FormData()
      form.set(name, 'true')
      form.set('file', new Blob(['nom;numéro;montant;opérateur\nAwa;70000001;5000;OperatorA']), 'people.csv')
      const imported = await fetch(`${fixture.url}/merchant/api/bulk/batches/import`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${merchant.token}` },
        body: form,
      })
      const answers = [
        await call(merchant, 'POST', `/${id}/process${parameters}`),
        await call(merchant, 'POST', `/${id}/process`, { [name]: true }),
        await call(merchant, 'POST', `/${id}/process${parameters}&dry_run=false`),
        await call(merchant, 'POST', parameters, body),
        await call(merchant, 'POST', '', { ...body, [name]: true }),
        { status: imported.status, body: (await imported.json()) as object },
      ]
      for (const answer of answers) {
        expect(answer.status).toBe(400)
        const message = `must be written dry_run, not ${JSON.stringify(name)}`
        expect(problemOf(answer.body)).toEqual([{ field: 'dry_run', message }])
      }
      expect(await written()).toEqual(before)
    },
  )

  test.each<[string, object]>([
    ['/pay', { amount: 500, payment_method: 'OperatorA' }],
    ['/deposit', { amount: 1_000, payment_method: 'OperatorA' }],
    ['/payouts', { amount: 1_000, payment_method: 'OperatorA', destination_phone: customer('00') }],
    ['/payment-links', { title: 'Cours', amount: 5_000 }],
  ])('of POST %s is refused: there is none', async (path, fields) => {
    const before = await written()
    const sent = { customer_phone: customer('00'), ...fields }
    const { token } = merchant
    const answers = [
      await fixture.rest('POST', `${path}?dry_run=true`, { token, body: sent }),
      await fixture.rest('POST', path, { token, body: { ...sent, dry_run: true } }),
    ]
    for (const { status, body: answer } of answers) {
      const problems = [{ field: 'dry_run', message: 'is not possible: this request has no dry run' }]
      expect({ status, problems: problemOf(answer) }).toEqual({ status: 400, problems })
    }
    expect(await written()).toEqual(before)
  })
})

describe('a list', () => {
  test('takes all values of its filter, repeated or separated by commas', async () => {
    const own = await fixture.merchant()
    const [paid, failed] = await Promise.all([
      fixture.paid(own, { customer_phone: customer('00') }),
      fixture.paid(own, { customer_phone: customer('01') }),
    ])
    await eventually(async () => {
      await fixture.advance(10_000)
      expect(await fixture.statusOf(own, paid['transaction_id'])).toBe('success')
      expect(await fixture.statusOf(own, failed['transaction_id'])).toBe('failed')
    })
    const idsOf = async (parameters: string) => {
      const { status, body } = await fixture.rest('GET', `/transactions?${parameters}`, { token: own.token })
      expect(status).toBe(200)
      return body['data'].transactions
        .map(({ id: each }: { id: number }) => each)
        .toSorted((a: number, b: number) => a - b)
    }
    const both = [paid['transaction_id'] as number, failed['transaction_id'] as number].toSorted(
      (a: number, b: number) => a - b,
    )
    expect(await idsOf('status=failed')).toEqual([failed['transaction_id']])
    expect(await idsOf('status=failed&status=success')).toEqual(both)
    expect(await idsOf('status=success&status=failed&status=success')).toEqual(both)
    expect(await idsOf('status=failed,expired&status=success')).toEqual(both)
    const csv = await fetch(
      `${fixture.url}/merchant/api/exports/transactions.csv?status=failed&status=success`,
      {
        headers: { Authorization: `Bearer ${own.token}` },
      },
    )
    expect((await csv.text()).trim().split('\r\n')).toHaveLength(3)
  })

  test.each([
    ['/transactions?limit=1&limit=100', 'limit'],
    ['/transactions?offset=0&offset=0', 'offset'],
    ['/transactions?created_from=2026-01-01&created_from=2026-02-01', 'created_from'],
    ['/payouts?reference=a&reference=b', 'reference'],
    ['/exports/transactions.csv?amount_min=1&amount_min=2', 'amount_min'],
    ['/balance?payment_method=OperatorA&payment_method=OperatorB', 'payment_method'],
    ['/payment/status/x?merchant_id=1&merchant_id=2', 'merchant_id'],
    ['/webhooks?limit=1&limit=2', 'limit'],
  ])('GET %s is refused, and names %s', async (path, field) => {
    const { status, body } = await fixture.rest('GET', path, { token: merchant.token })
    expect(status).toBe(400)
    expect(problemOf(body)).toEqual([{ field, message: 'occurs more than once' }])
  })

  test('of GraphQL by GET: a repeated parameter is refused', async () => {
    const one = encodeURIComponent('{ __typename }')
    for (const twice of [`query=${one}&query=${one}`, `query=${one}&variables={}&variables={}`]) {
      const response = await fetch(`${fixture.url}/graphql?${twice}`)
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining('occurs more than once'),
      ])
    }
  })
})

test('the form of a payment link with an amount or number that occurs twice pays nothing', async () => {
  const { body } = await fixture.rest('POST', '/payment-links', {
    token: merchant.token,
    body: { title: 'Don', amount: null },
  })
  const before = await written()
  const right = `amount=5000&phone=${customer('00').slice(-8)}`
  for (const repeated of [`${right}&amount=50000`, `${right}&phone=70000001`]) {
    const response = await fetch(body['data'].url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: repeated,
      redirect: 'manual',
    })
    expect(response.status).toBe(422)
  }
  expect(await written()).toEqual(before)
})

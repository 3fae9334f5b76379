import { expect, test } from 'vitest'
import { refusals } from '../../../src/shared/errors.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { approvalsOn } from '../../kit/approvals.ts'
import { eventually } from '../../kit/eventually.ts'
import { payoutsOn } from '../../kit/payouts.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

// The whitelist is changed in the database, as another node changes it. The statement that moves money checks
// the caller's address against it, even when this node's own cache is fresh.

const fixture = await openFixture()
const { owner } = fixture.database
const { shop, payOut, ahead } = payoutsOn(fixture)
const { ask, team, waiting } = approvalsOn(fixture)

interface Call {
  token: string
  merchantId: number
  /** @returns the status of the answer and its code */
  send: () => Promise<{ status?: number; code: unknown }>
}

async function rest(merchant: TestMerchant, path: string, body?: object) {
  const answer = await fixture.rest('POST', path, { token: merchant.token, body })
  const isAddress = answer.body.message === refusals.ADDRESS_NOT_ALLOWED.message
  return { status: answer.status, code: isAddress ? 'ADDRESS_NOT_ALLOWED' : answer.body.message }
}

const graphql = async (token: string, document: string) => {
  const { code, __typename } = await ask(token, document)
  return { code: code ?? __typename }
}

async function payout(merchant: TestMerchant, body: object): Promise<number> {
  return (await payOut(merchant, body)).body.data.id as number
}

async function draft(merchant: TestMerchant): Promise<number> {
  const recipients = [{ name: 'Awa', account: customer('00'), amount: 1_000, payment_method: 'OperatorA' }]
  const { body } = await fixture.rest('POST', '/bulk/batches', {
    token: merchant.token,
    body: { recipients },
  })
  return body.data.id as number
}

const paying = () => ({ amount: 1_000, payment_method: 'OperatorA', customer_phone: customer('00') })

const calls: Record<string, () => Promise<Call>> = {
  async 'POST /pay'() {
    const merchant = await shop()
    return { ...merchant, send: () => rest(merchant, '/pay', paying()) }
  },
  async 'POST /deposit'() {
    const merchant = await shop()
    return { ...merchant, send: () => rest(merchant, '/deposit', paying()) }
  },
  async refundTransaction() {
    const merchant = await shop()
    const { transaction_id: id } = await fixture.paid(merchant, { customer_phone: customer('00') })
    await eventually(async () => expect(await fixture.statusOf(merchant, id)).toBe('success'))
    const document = `mutation { refundTransaction(id: "${String(id)}") { __typename
      ... on Refusal { code } } }`
    return { ...merchant, send: () => graphql(merchant.token, document) }
  },
  async 'POST /payouts'() {
    const merchant = await shop()
    const { customer_phone: destination_phone, ...body } = paying()
    return { ...merchant, send: () => rest(merchant, '/payouts', { ...body, destination_phone }) }
  },
  async cancelPayout() {
    const merchant = await shop()
    const id = await payout(merchant, { scheduled_at: ahead(3_600_000) })
    const document = `mutation { cancelPayout(id: ${id}) { __typename ... on Refusal { code } } }`
    return { ...merchant, send: () => graphql(merchant.token, document) }
  },
  async 'POST /bulk/batches/{id}/process'() {
    const merchant = await shop()
    const id = await draft(merchant)
    return { ...merchant, send: () => rest(merchant, `/bulk/batches/${id}/process`) }
  },
  async 'POST /bulk/batches/{id}/cancel'() {
    const merchant = await shop()
    const id = await draft(merchant)
    return { ...merchant, send: () => rest(merchant, `/bulk/batches/${id}/cancel`) }
  },
  async approvePayout() {
    const { merchant, person } = await team()
    const { id, digest } = await waiting(merchant)
    const { token } = await person()
    const document = `mutation { approvePayout(id: ${id}, digest: "${digest}") { __typename
      ... on Refusal { code } } }`
    return { token, merchantId: merchant.merchantId, send: () => graphql(token, document) }
  },
}

/** All rows that a call could have changed, without the alert about it. */
async function snapshotOf(merchantId: number): Promise<unknown> {
  const { rows } = await owner.query(
    `SELECT (SELECT json_agg(status ORDER BY id) FROM transaction WHERE merchant_id = $1) AS transactions,
       (SELECT json_agg((status, approval) ORDER BY id) FROM payout WHERE merchant_id = $1) AS payouts,
       (SELECT json_agg((status, approval) ORDER BY id) FROM batch WHERE merchant_id = $1) AS batches,
       (SELECT count(*) FROM approval_verdict WHERE merchant_id = $1) AS verdicts,
       (SELECT json_agg((step, amount) ORDER BY id) FROM ledger_entry WHERE merchant_id = $1) AS entries,
       (SELECT count(*) FROM audit_entry WHERE merchant_id = $1) AS entries,
       (SELECT count(*) FROM event WHERE merchant_id = $1 AND type <> 'security_alert') AS events`,
    [merchantId],
  )
  return rows[0]
}

test.each(Object.entries(calls))(
  '%s from an address that is no longer on the whitelist',
  async (_name, make) => {
    const { token, merchantId, send } = await make()
    const list = (entries: string[]) =>
      owner.query('UPDATE merchant SET ip_whitelist = $2 WHERE id = $1', [merchantId, entries])
    await list(['192.0.2.1', '127.0.0.0/8', '::1'])
    // This node has just read the whitelist.
    expect(await ask(token, '{ balance { available } }')).toMatchObject({ available: expect.anything() })
    const before = await snapshotOf(merchantId)
    await list(['192.0.2.1'])
    const { status = 403, code } = await send()
    expect({ status, code }).toEqual({ status: 403, code: 'ADDRESS_NOT_ALLOWED' })
    expect(await snapshotOf(merchantId)).toEqual(before)

    await list(['192.0.2.1', '127.0.0.0/8', '::1'])
    await eventually(async () => {
      const again = await send()
      expect(String(again.code)).not.toBe('ADDRESS_NOT_ALLOWED')
    })
  },
)

// The tests call from an IPv4 address of this machine.
test.each([
  { entry: '::/0', allows: false },
  { entry: '::/8', allows: false },
  { entry: '0.0.0.0/0', allows: true },
  { entry: '127.0.0.1/8', allows: true },
  { entry: '::ffff:0:0/96', allows: true },
  { entry: '::ffff:127.0.0.0/104', allows: true },
  { entry: '::ffff:127.0.0.0/90', allows: false },
  { entry: '0127.0.0.1', allows: false },
])('$entry allows an IPv4 caller to read where it allows to pay: $allows', async ({ entry, allows }) => {
  const merchant = await shop()
  await owner.query('UPDATE merchant SET ip_whitelist = $2 WHERE id = $1', [merchant.merchantId, [entry]])
  fixture.app.services.access.credentials.forget(await keyOf(merchant))
  const read = await fixture.rest('GET', '/balance', { token: merchant.token })
  const paid = await rest(merchant, '/pay', paying())
  expect([read.status, paid.status]).toEqual(allows ? [200, 202] : [403, 403])
})

async function keyOf({ apiKey }: TestMerchant): Promise<number> {
  const { rows } = await owner.query<{ id: number }>('SELECT id FROM api_key WHERE key = $1', [apiKey])
  return rows[0]?.id ?? -1
}

test('a whitelist of all IPv6 addresses is refused to an IPv4 caller, whom it would shut out', async () => {
  const merchant = await shop()
  const put = (entry: string) =>
    fixture.rest('PUT', '/settings', { token: merchant.token, body: { ip_whitelist: [entry] } })
  const { status, body } = await put('::/0')
  expect([status, body.errors]).toEqual([
    400,
    [{ field: 'ip_whitelist', message: 'must contain your own IP address, 127.0.0.1' }],
  ])
  const kept = await put('::ffff:127.0.0.0/104')
  expect([kept.status, kept.body.data.ip_whitelist]).toEqual([200, ['127.0.0.0/8']])
})

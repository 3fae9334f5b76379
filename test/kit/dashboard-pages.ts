import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import type { RestAnswer, TestApp, TestMerchant } from './app.ts'
import { eventually } from './eventually.ts'
import { makeMember, type TestMember } from './members.ts'
import { settleMany } from './money.ts'
import { payBy } from './money-links.ts'
import { root } from './sources.ts'

// A merchant whose data fill each page of `test/graphql/pages`, with amounts that are known.

/** The documents of the dashboard, by the names of their files. */
export const pageNames = [
  'home',
  'batches',
  'approvals',
  'live-payment',
  'links',
  'team',
  'webhook-log',
  'statement',
] as const
export type PageName = (typeof pageNames)[number]

export const readPage = (name: PageName): string =>
  readFileSync(join(root, `test/graphql/pages/${name}.graphql`), 'utf8')

/** The merchant of the pages. */
export interface DashboardShop {
  merchant: TestMerchant
  /** Reads the pages, and made none of the requests. */
  owner: TestMember
  /** Made the payouts, deposits and batches. */
  maker: TestMember
  /** The number of rows of each list, and of the requests of each kind that wait for approval. */
  rows: number
  waiting: number
  /** The number of refunds of the payment `big`. */
  refunds: number
  /** The moment at which all payments in were settled, and none was refunded or paid out. */
  paidInAt: Date
  webhookId: string
}

/** The amounts, in whole XOF. */
export const amounts = {
  funds: 10_000_000,
  sale: 5_000,
  big: 100_000,
  byLink: 2_000,
  refund: 1_000,
  payout: 1_000,
  recipient: 1_000,
  waiting: 100_000,
}

/** The balance of the merchant, in whole XOF: what all payments together make of it. */
export function balanceOf({ rows, refunds, waiting }: DashboardShop) {
  const paidIn = amounts.funds + amounts.big + rows * (amounts.sale + amounts.byLink)
  const paidOut = refunds * amounts.refund + rows * (amounts.payout + amounts.recipient)
  const reserved = 3 * waiting * amounts.waiting
  return { paidIn, balance: paidIn - paidOut, available: paidIn - paidOut - reserved, reserved }
}

/** The variables with which a page shows all rows of a merchant. */
export function variablesOf(shop: DashboardShop): Record<PageName, Record<string, unknown>> {
  const from = shop.paidInAt.toISOString()
  return {
    home: { from: new Date(shop.paidInAt.getTime() - 6 * 86_400_000).toISOString(), first: 50 },
    batches: { first: 100 },
    approvals: { first: 50 },
    'live-payment': { reference: 'big' },
    links: { first: 50 },
    team: { first: 100 },
    'webhook-log': { first: 50 },
    statement: { from, first: 100 },
  }
}

/** A number that confirms at once. */
const phone = '+22370000001'
const paying = { payment_method: 'OperatorA', customer_phone: phone }
const numbers = (count: number) => Array.from({ length: count }, (_none, index) => index + 1)

/** @returns the data of the answer @throws Error where the answer is no success */
function dataOf(answer: RestAnswer): Record<string, unknown> {
  expect(answer.body, JSON.stringify(answer.body)).toMatchObject({ success: true })
  return answer.body['data']
}

/** Opens a merchant with `rows` rows of each kind, and waits until each payment is final. */
export async function openDashboardShop(
  service: TestApp,
  receiver: string,
  rows: number,
): Promise<DashboardShop> {
  const { access, pool } = { access: service.app.services.access, pool: service.database.database.pool }
  const merchant = await service.merchant()
  const { merchantId, token } = merchant
  const owner = await makeMember(access, merchantId, 'owner', `awa-${rows}`)
  const maker = await makeMember(access, merchantId, 'finance', `moussa-${rows}`)
  const call = async (method: string, path: string, body: object, as = token) =>
    dataOf(await service.rest(method, path, { token: as, body }))

  await fundMerchant(service.app.services, merchantId, { amount: amounts.funds })
  await addTeam(service, owner, rows)
  for (const n of numbers(rows)) {
    const link = await call('POST', '/payment-links', { title: `Café ${n}`, amount: amounts.byLink })
    const { id } = await payBy(pool, Number(link['id']), amounts.byLink)
    await settleMany(pool, [{ id, to: 'success' }])
  }
  const hook = await call('POST', '/webhooks', { url: receiver, events: ['payment_received'] })
  await Promise.all(
    numbers(rows).map((n) =>
      call('POST', '/pay', { ...paying, amount: amounts.sale, reference: `sale-${n}` }),
    ),
  )
  const big = await call('POST', '/pay', { ...paying, amount: amounts.big, reference: 'big' })
  await settled(service, merchant, rows + 1)
  const paidInAt = new Date()
  const refunds = Math.min(rows, 20)
  await refund(service, token, big['transaction_id'], refunds)
  await payOut(service, maker, 1, 1)
  await payBatch(service, maker, rows)
  await settled(service, merchant, rows + 1)
  await payOut(service, maker, 2, rows)
  const waiting = Math.min(rows, 16)
  await requestApprovals(service, owner, maker, waiting)
  await settled(service, merchant, rows + 1)
  const webhookId = String(hook['id'])
  return { merchant, owner, maker, rows, waiting, refunds, paidInAt, webhookId }
}

/** Adds members, keys and sessions, as many as there are rows; the owner has 20 sessions at most. */
async function addTeam(service: TestApp, { merchantId, memberId, token }: TestMember, rows: number) {
  const { access } = service.app.services
  for (const n of numbers(rows)) await makeMember(access, merchantId, 'viewer', `viewer-${rows}-${n}`)
  const key = `mutation ($name: String!) { createApiKey(input: { name: $name, scopes: [BALANCE] }) {
    __typename ... on IssuedApiKey { apiKey { id } } } }`
  for (const n of numbers(rows)) {
    const { body } = await service.graphql(key, { name: `Till ${n}` }, token)
    expect(body.data?.createApiKey).toMatchObject({ __typename: 'IssuedApiKey' })
  }
  await service.database.owner.query(
    `INSERT INTO session (merchant_id, member_id, expires_at)
     SELECT $1, $2, now() + interval '12 hours' FROM generate_series(2, $3::int)`,
    [merchantId, memberId, Math.min(rows, 20)],
  )
}

async function refund(service: TestApp, token: string, id: unknown, count: number): Promise<void> {
  const document = `mutation ($id: ID!, $amount: Amount!, $reference: String) {
    refundTransaction(id: $id, amount: $amount, reference: $reference) {
      __typename ... on Refusal { code message } } }`
  for (const n of numbers(count)) {
    const refunded = { id: String(id), amount: amounts.refund, reference: `back-${n}` }
    const { body } = await service.graphql(document, refunded, token)
    expect(body.data?.refundTransaction).toEqual({ __typename: 'PaymentInitiation' })
  }
}

/** Pays the payouts from the one number to the other. */
async function payOut(service: TestApp, { token }: TestMember, from: number, to: number): Promise<void> {
  for (let n = from; n <= to; n += 1) {
    const payout = { amount: amounts.payout, payment_method: 'OperatorA', destination_phone: phone }
    dataOf(await service.rest('POST', '/payouts', { token, body: { ...payout, reference: `rent-${n}` } }))
  }
}

/** Pays a batch, in which the last recipient has no account. The other batches stay drafts. */
async function payBatch(service: TestApp, { token }: TestMember, rows: number): Promise<void> {
  const recipients = numbers(rows).map((n) => recipient(`Awa ${n}`, phone))
  const salaries = { title: 'Salaries', recipients: [...recipients, recipient('Nameless', '+22370030001')] }
  const made = dataOf(await service.rest('POST', '/bulk/batches', { token, body: salaries }))
  dataOf(await service.rest('POST', `/bulk/batches/${String(made['id'])}/process`, { token }))
  for (const n of numbers(rows - 1)) {
    const body = { title: `Draft ${n}`, recipients }
    dataOf(await service.rest('POST', '/bulk/batches', { token, body }))
  }
}

const recipient = (name: string, account: string, amount: number = amounts.recipient) => ({
  name,
  account,
  amount,
  payment_method: 'OperatorA',
})

/** Requests `count` payouts, deposits and batches that wait for approval, and a change of the settings. */
async function requestApprovals(service: TestApp, owner: TestMember, maker: TestMember, count: number) {
  const call = async (path: string, body?: object) =>
    dataOf(await service.rest('POST', path, { token: maker.token, body }))
  const body = {
    payouts_require_approval: true,
    approval_threshold: amounts.waiting,
    approvals_cover_deposits: true,
  }
  dataOf(await service.rest('PUT', '/settings', { token: owner.token, body }))
  const money = { amount: amounts.waiting, payment_method: 'OperatorA' }
  for (const n of numbers(count)) {
    await call('/payouts', { ...money, destination_phone: phone, reference: `cement-${n}` })
    await call('/deposit', { ...money, customer_phone: phone, reference: `gift-${n}` })
    const recipients = [recipient('Fanta', phone, amounts.waiting)]
    const { id } = await call('/bulk/batches', { title: `Bonus ${n}`, recipients })
    await call(`/bulk/batches/${String(id)}/process`)
  }
  const { access } = service.app.services
  const second = await makeMember(access, owner.merchantId, 'owner', `fanta-${count}`)
  const change = { approval_threshold: 2 * amounts.waiting }
  dataOf(await service.rest('PUT', '/settings', { token: second.token, body: change }))
}

/** Waits until no payment of the merchant is on its way, and so many deliveries arrived. */
async function settled({ database }: TestApp, { merchantId }: TestMerchant, deliveries: number) {
  await eventually(async () => {
    const { rows } = await database.owner.query<object>(
      `SELECT (SELECT count(*)::int FROM transaction WHERE merchant_id = $1
             AND status = ANY('{pending,processing}') AND reference NOT LIKE 'gift-%')
         + (SELECT count(*)::int FROM payout WHERE merchant_id = $1
             AND status = ANY('{pending,processing}') AND reference NOT LIKE 'cement-%')
         + (SELECT count(*)::int FROM batch WHERE merchant_id = $1 AND status = 'processing') AS open,
         (SELECT count(*)::int FROM webhook_delivery
           WHERE merchant_id = $1 AND status = 'delivered') AS delivered`,
      [merchantId],
    )
    expect(rows).toEqual([{ open: 0, delivered: deliveries }])
  })
}

/** A receiver of webhooks that answers 200. @returns its address */
export async function openReceiver(): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end('thanks'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${port}/`, close }
}

/** The name of the query of a page, by which a request chooses it beside the page's other operation. */
export function queryOf(name: PageName): string {
  const words = name.split('-').map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
  return `${words.join('')}Query`
}

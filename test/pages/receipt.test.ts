import { afterAll, beforeAll, expect, test } from 'vitest'
import { formatXof } from '../../src/shared/money.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { eventually } from '../kit/eventually.ts'

// The page of a payment that its merchant asked for: its state, and its receipt.

let service: TestApp
let shop: TestMerchant
beforeAll(async () => {
  service = await startTestApp()
  shop = await service.merchant('Pharmacie du Fleuve')
})
afterAll(() => service.close())

const document = `query ($reference: String!) { transaction(reference: $reference) { receiptUrl status } }`
async function receiptOf(reference: string): Promise<string> {
  const { body } = await service.graphql(document, { reference }, shop.token)
  expect(body.errors).toBeUndefined()
  return body.data.transaction.receiptUrl
}
async function pay(
  phone: string,
  more: object = {},
): Promise<{ reference: string; url: string | undefined }> {
  const body = { amount: 5_000, customer_phone: phone, payment_method: 'OperatorA', ...more }
  const { body: answer } = await service.rest('POST', '/pay', { token: shop.token, body })
  return answer.data
}
async function look(address: string) {
  const response = await fetch(address, { headers: { 'Accept-Language': 'en' }, redirect: 'manual' })
  return { status: response.status, headers: response.headers, text: await response.text() }
}
/** The text once the page has changed. */
const liveText = async (address: string) => (await fetch(`${address}/live`)).text()

test('the page of a payment waits live, then shows everything but the number', async () => {
  const open = await pay('70090101')
  const waiting = await look(await receiptOf(open.reference))
  expect(waiting.text).toContain('Confirm on your telephone')
  expect(waiting.headers.get('x-robots-tag')).toContain('noindex')
  expect(waiting.headers.get('content-security-policy')).toContain("default-src 'none'")
  const { reference } = await pay('70000101', { reference: 'order 7', description: 'Sirop <b>x2</b>' })
  const address = await receiptOf(reference)
  expect(address).toMatch(new RegExp(`^${service.url}/r/\\d+\\.[\\w-]{22}$`))
  expect(await liveText(address)).toContain('event: over\n')
  const { text } = await look(address)
  const parts = [
    'Payment complete',
    formatXof(5_000),
    'Pharmacie du Fleuve',
    'Sirop &lt;b&gt;x2&lt;/b&gt;',
    'order 7',
  ]
  for (const part of parts) expect(text).toContain(part)
  expect(text).toMatch(/Operator&#39;s reference<\/dt><dd class="code">\S+</)
  expect(text).not.toMatch(/70 ?00 ?01 ?01/)
})

test('the page of a failed payment says why, and offers no form', async () => {
  const { reference } = await pay('70010101')
  const address = await receiptOf(reference)
  await liveText(address)
  const { text } = await look(address)
  for (const part of ['You declined this payment.', 'To pay, contact Pharmacie du Fleuve.'])
    expect(text).toContain(part)
  expect(text).not.toContain('Try again')
})

test('a hosted page leads to the receipt, unless the payment names another address', async () => {
  const hosted = (more = {}) => pay('70000001', { payment_method: 'OperatorB', ...more })
  const shopUrl = `${service.url}/thanks`
  const [unnamed, named] = [await hosted(), await hosted({ return_url: shopUrl, cancel_url: shopUrl })]
  const headers = { 'x-control-token': service.controlToken }
  const requests = await (await fetch(`${service.simulator.url}/_sim/requests`, { headers })).text()
  expect(requests).toContain(await receiptOf(unnamed.reference))
  expect(requests).not.toContain(await receiptOf(named.reference))
  expect(requests).toContain(shopUrl)
})

test('the receipt shows an amount that was given back in part', async () => {
  const { reference } = await pay('70000001')
  const address = await receiptOf(reference)
  await liveText(address)
  const refund = `mutation ($id: ID!) { refundTransaction(id: $id, amount: 2000) { kind: __typename } }`
  const find = await service.graphql(
    `query ($reference: String!) { transaction(reference: $reference) { id } }`,
    { reference },
    shop.token,
  )
  const { body } = await service.graphql(refund, { id: find.body.data.transaction.id }, shop.token)
  expect(body.data.refundTransaction.kind).toBe('PaymentInitiation')
  const refunded = `Refunded</dt><dd class="name">${formatXof(2_000)}`
  await eventually(async () => expect((await look(address)).text).toContain(refunded))
  expect((await look(address)).text).toContain('Payment complete')
})

test('the receipt of a payment by a link is the page of the link', async () => {
  const { body } = await service.rest('POST', '/payment-links', {
    token: shop.token,
    body: { title: 'Cours', amount: 5_000, url_slug: 'cours' },
  })
  const sent = await fetch(body.data.url, {
    method: 'POST',
    body: new URLSearchParams({ amount: '5000', phone: '70000001' }),
    redirect: 'manual',
  })
  const reference = sent.headers.get('location')?.split('/').at(-1) ?? ''
  const { status, headers } = await look(`${await receiptOf(reference)}?lang=fr`)
  expect([status, headers.get('location')]).toEqual([303, `../l/cours/${reference}?lang=fr`])
})

test('no receipt address can be guessed, and money that goes out has none', async () => {
  const { reference } = await pay('70000001')
  const address = await receiptOf(reference)
  const [, id = '', proof = ''] = /r\/(\d+)\.(.*)$/.exec(address) ?? []
  const others = [
    `${Number(id) - 1}.${proof}`,
    `${id}.${proof.slice(1)}A`,
    `0${id}.${proof}`,
    id,
    `${id}.`,
    '%00',
  ]
  for (const other of others) {
    expect([other, (await look(`${service.url}/r/${other}`)).status]).toEqual([other, 404])
    expect((await look(`${service.url}/r/${other}/live`)).status).toBe(404)
  }
  await service.graphql('mutation { sandboxFund(amount: 10000) }', {}, shop.token)
  await service.rest('POST', '/deposit', {
    token: shop.token,
    body: { amount: 1_000, customer_phone: '70000001', payment_method: 'OperatorA', reference: 'out-1' },
  })
  expect(await receiptOf('out-1')).toBeNull()
})

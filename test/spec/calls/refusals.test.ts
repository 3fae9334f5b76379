import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { refusals } from '../../../src/shared/errors.ts'
import type { RestAnswer } from '../../kit/app.ts'
import { openFixture } from '../../kit/fixture.ts'

// Each error of REST has its code, and the address of a page that explains the code.

const fixture = await openFixture()
const shop = await fixture.merchant()
const { token } = shop
const rest = (...call: Parameters<typeof fixture.rest>) => fixture.rest(...call)

async function send(path: string, request: RequestInit = {}): Promise<RestAnswer> {
  const { status, headers, ...answer } = await fetch(`${fixture.url}${path}`, request).then(
    async (response) => ({ status: response.status, headers: response.headers, body: await response.json() }),
  )
  return { status, headers, ...answer }
}

/** Sends bytes that are no request. */
async function sendRaw(bytes: string): Promise<{ body: RestAnswer['body'] }> {
  const { hostname, port } = new URL(fixture.url)
  const socket = connect(Number(port), hostname)
  const parts: Buffer[] = []
  socket.on('data', (part) => parts.push(part))
  socket.write(bytes)
  await once(socket, 'close')
  return { body: JSON.parse(Buffer.concat(parts).toString().split('\r\n\r\n', 2)[1] ?? '') }
}

const callbacks = '/operators/OperatorA/callbacks'
const put = { method: 'PUT', body: '{}' }

const answers: readonly [string, string, () => Promise<Pick<RestAnswer, 'body'>>][] = [
  ['a payment with a wrong field', 'INVALID_INPUT', () => fixture.pay(shop, { amount: 1 })],
  ['a request without a token', 'UNAUTHENTICATED', () => rest('GET', '/balance')],
  ['wrong credentials', 'CREDENTIALS_REJECTED', () => rest('POST', '/auth')],
  ['an unknown path of the API', 'NOT_FOUND', () => rest('GET', '/nothing-here')],
  ['an unknown path elsewhere', 'NOT_FOUND', () => send('/nothing-here')],
  ['an unknown reference', 'NOT_FOUND', () => rest('GET', '/payment/status/unknown')],
  ['an unknown payment', 'NOT_FOUND', () => rest('GET', '/transactions/999999', { token })],
  ['a wrong method', 'METHOD_NOT_ALLOWED', () => rest('DELETE', '/pay', { token })],
  ['an export without a token', 'UNAUTHENTICATED', () => rest('GET', '/exports/payouts.csv')],
  ['a template without a token', 'UNAUTHENTICATED', () => rest('GET', '/bulk/batches/template.csv')],
  ['the QR code of no link', 'NOT_FOUND', () => rest('GET', '/payment-links/999/qr.svg', { token })],
  ['a payout beyond the balance', 'INSUFFICIENT_BALANCE', () => fixture.deposit(shop, { amount: 5_000 })],
  ['the callback of an unknown operator', 'NOT_FOUND', () => send('/operators/None/callbacks/x', put)],
  ['a callback with a wrong token', 'FORBIDDEN', () => send(`${callbacks}/x`, put)],
  ['bytes that are no request', 'MALFORMED_REQUEST', () => sendRaw('nonsense\r\n\r\n')],
  [
    'headers that are too large',
    'HEADERS_TOO_LARGE',
    () => rest('GET', '/status', { headers: { 'X-Large': 'x'.repeat(20_000) } }),
  ],
]

describe.each(answers)('the answer to %s', (_what, code, ask) => {
  test(`has the code ${code} and its page`, async () => {
    const { body } = await ask()
    expect(body).toMatchObject({ success: false, code, message: expect.stringMatching(/\.$/) })
    const docs = new URL(body['docs'], fixture.url)
    expect(docs.href).toBe(`${fixture.url}/docs/errors#${code}`)
  })
})

test('a repeated reference has its code beside the existing payment', async () => {
  const { reference } = await fixture.paid(shop)
  const { body } = await fixture.pay(shop, { reference })
  expect(body).toMatchObject({ code: 'DUPLICATE_REFERENCE', existing_transaction: { status: 'pending' } })
})

test('a success has neither code nor docs', async () => {
  for (const { body } of [await rest('GET', '/status'), await fixture.pay(shop)]) {
    expect(body).not.toHaveProperty('code')
    expect(body).not.toHaveProperty('docs')
  }
})

test.each(['fr', 'en'])(
  'the page of errors in %s has an anchor with words for each code',
  async (language) => {
    const page = await fetch(`${fixture.url}/docs/errors?lang=${language}`)
    expect(page.headers.get('Content-Type')).toMatch(/^text\/html/)
    const text = (await page.text()).replaceAll('&#39;', "'")
    for (const [code, { status, message }] of Object.entries(refusals)) {
      const [, words] = new RegExp(`<h2 id="${code}">${code}</h2>\n<p>(.+)</p>`).exec(text) ?? []
      expect(words).toContain(` ${status}. `)
      expect(words?.endsWith(message)).toBe(language === 'en')
    }
  },
)

test('the page of errors is in French for a visitor who asks for no language', async () => {
  expect(await (await fetch(`${fixture.url}/docs/errors`)).text()).toContain('<html lang="fr">')
})

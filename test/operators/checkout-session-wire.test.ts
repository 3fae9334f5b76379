import { expect, onTestFinished, test } from 'vitest'
import type { CheckoutSettings } from '../../src/config/operators.ts'
import { createCheckoutDriver } from '../../src/operators/checkout-session.ts'
import type { OperatorHandle } from '../../src/operators/operator.ts'
import {
  type FaultAct,
  call,
  checkoutSettings,
  deps,
  newHandle,
  reply,
  scriptedOperator,
} from '../kit/operators.ts'

function driverAt(url: string, more: Partial<CheckoutSettings> = {}) {
  const driver = createCheckoutDriver(checkoutSettings(url, more), deps)
  onTestFinished(() => driver.close())
  return driver
}

function asked(phone: string, handle: OperatorHandle = newHandle(), attempt = 1) {
  const addresses = {
    successUrl: 'https://shop.test/ok',
    cancelUrl: 'https://shop.test/no',
    callbackUrl: 'unused',
  }
  return { handle, amount: 5_000n, payer: phone, payee: phone, attempt, ...addresses }
}

async function played(act: FaultAct, more: Partial<CheckoutSettings> = {}) {
  const script = await scriptedOperator(act)
  return { script, driver: driverAt(script.url, more) }
}
const session = {
  id: 'cos-1',
  amount: '5000',
  currency: 'XOF',
  checkout_status: 'open',
  payment_status: 'processing',
  launch_url: 'https://pay.test/c/cos-1',
  when_created: '2026-01-31T10:00:00Z',
}

test('a session carries the key, the payer and our reference', async () => {
  const { script, driver } = await played(reply(200, session), { payerField: 'only_from' })
  const request = asked('+22370000001')
  await driver.collect(request, call())
  const [seen] = script.seen
  expect(seen).toMatchObject({ method: 'POST', path: '/op-b/v1/checkout/sessions' })
  expect(seen?.headers).toMatchObject({
    authorization: 'Bearer sandbox-key-b',
    'idempotency-key': request.handle.correlationId,
  })
  expect(JSON.parse(seen?.body ?? '')).toEqual({
    amount: '5000',
    currency: 'XOF',
    success_url: 'https://shop.test/ok',
    error_url: 'https://shop.test/no',
    client_reference: request.handle.clientRef,
    only_from: '+22370000001',
  })
})

test.each(['javascript:alert(1)', '', 'not a url'])(
  'a page at %j is not handed to a customer',
  async (launch_url) => {
    const { driver } = await played(reply(200, { ...session, launch_url }))
    expect(await driver.collect(asked('+22370000001'), call())).toMatchObject({
      kind: 'unknown',
      handle: { sessionId: 'cos-1' },
    })
  },
)

test('the address of the payment page reaches the customer in ASCII, as a header needs', async () => {
  const { driver } = await played(reply(200, { ...session, launch_url: 'HTTPS://pay.test/é' }))
  const action = { type: 'redirect', url: 'https://pay.test/%C3%A9' }
  expect(await driver.collect(asked('+22370000001'), call())).toMatchObject({ kind: 'accepted', action })
})

test.each([
  ['complete', 'succeeded', 'settled'],
  ['complete', 'processing', 'pending'],
  ['complete', 'cancelled', 'pending'],
  ['open', 'succeeded', 'pending'],
  ['open', 'cancelled', 'pending'],
  ['expired', 'processing', 'refused'],
  ['paused', 'processing', 'pending'],
])('a session %s/%s is %s', async (checkout_status, payment_status, kind) => {
  const found = { ...session, checkout_status, payment_status }
  const { driver } = await played((response, seen) =>
    reply(200, seen.path.includes('search') ? { result: [found] } : found)(response, seen),
  )
  expect(await driver.query('collect', { ...newHandle(), sessionId: 'cos-1' }, call())).toMatchObject({
    kind,
  })
})

test('a session that ended after its time is a timeout, one that ended before is cancelled', async () => {
  for (const [when_expires, reason] of [
    ['2026-01-31T10:30:00Z', 'PAYER_TIMEOUT'],
    ['2999-01-01T00:00:00Z', 'CANCELLED'],
  ]) {
    const { driver } = await played(
      reply(200, { result: [{ ...session, checkout_status: 'expired', when_expires }] }),
    )
    expect(await driver.query('collect', newHandle(), call())).toMatchObject({
      kind: 'refused',
      refusal: { reason },
    })
  }
})

test('a failed session is not final while the search for others is out of reach', async () => {
  const { driver } = await played((response, seen) =>
    seen.path.includes('search')
      ? reply(500, {})(response, seen)
      : reply(200, { ...session, checkout_status: 'expired' })(response, seen),
  )
  const outcome = await driver.query('collect', { ...newHandle(), sessionId: 'cos-1' }, call())
  expect(outcome).toEqual({ kind: 'unreachable', cause: 'http_5xx' })
})

test('a resend makes nothing while the search for the first session is out of reach', async () => {
  const { script, driver } = await played(reply(500, {}))
  expect(await driver.collect(asked('+22370000001', newHandle(), 2), call())).toMatchObject({
    kind: 'unknown',
    cause: 'http_5xx',
  })
  expect(script.seen.map(({ method }) => method)).toEqual(['GET'])
})

test.each([
  [400, 'who-knows'],
  [409, 'idempotency-mismatch'],
  [403, 'service-unavailable'],
  [408, 'request-validation-error'],
])('%i %s proves nothing', async (status, code) => {
  const { driver } = await played(reply(status, { code }))
  expect(await driver.collect(asked('+22370000001'), call())).toMatchObject({
    kind: 'unknown',
    cause: 'unmapped',
  })
})

test('a revoked key is a refusal of our credentials', async () => {
  const { driver } = await played(reply(401, { code: 'api-key-revoked' }))
  const refused = { kind: 'refused', refusal: { reason: 'CREDENTIALS_REJECTED', code: 'api-key-revoked' } }
  expect(await driver.collect(asked('+22370000001'), call())).toMatchObject(refused)
})

test('a statement whose cursor stands still is unreachable', async () => {
  const { driver } = await played(
    reply(200, { page_info: { has_next_page: true, end_cursor: 'c' }, items: [] }),
  )
  expect(await driver.statement('2026-01-31', call())).toMatchObject({ kind: 'unreachable' })
})

import { createHmac, timingSafeEqual } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { newWebhookSecret } from '../../../src/resources/webhooks/sign.ts'
import type { Secret } from '../../../src/shared/secret.ts'
import { type Arrived, deliver } from '../../kit/webhooks/receivers.ts'

// Characters that change when the body is read as anything but bytes.
const body = Buffer.from(
  '{"event":"payment_received", "data":{"reference":"commande n° 7 — café","amount":5e3}}',
)

/** The check of the specification, as a receiver writes it. */
function isSigned({ headers, body: raw }: Arrived, secret: Secret, header = 'x-service-signature'): boolean {
  const given = Buffer.from(String(headers[header]), 'hex')
  const expectedDigest = createHmac('sha256', secret.reveal()).update(raw).digest()
  return given.length === expectedDigest.length && timingSafeEqual(given, expectedDigest)
}

/** The check of the published package. */
function verify({ headers, body: raw }: Arrived, secret: Secret): unknown {
  return new Webhook(secret.reveal()).verify(raw, headers as Record<string, string>)
}

test('a delivery is verified by the package of Standard Webhooks and by a plain HMAC', async () => {
  const secret = newWebhookSecret()
  const arrived = await deliver(body, { secret })
  expect(arrived.body).toEqual(body)
  expect(verify(arrived, secret)).toEqual(JSON.parse(body.toString()))
  expect(isSigned(arrived, secret)).toBe(true)
  expect(arrived.headers).toMatchObject({
    'content-type': 'application/json',
    'x-service-event': 'payment_received',
    'x-service-signature': expect.stringMatching(/^[0-9a-f]{64}$/),
    'webhook-id': 'evt_7',
    'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
    'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
  })
  expect(arrived.headers).not.toHaveProperty('x-service-signature-next')
})

test('while a rotation lasts both secrets verify, and afterwards only the new one', async () => {
  const [old, fresh] = [newWebhookSecret(), newWebhookSecret()]
  const during = await deliver(body, { secret: fresh, previous: old })
  for (const secret of [old, fresh]) expect(verify(during, secret)).toHaveProperty('event')
  // A receiver that knows only the old secret reads the header that it always read.
  expect(isSigned(during, old)).toBe(true)
  expect(isSigned(during, fresh)).toBe(false)
  expect(isSigned(during, fresh, 'x-service-signature-next')).toBe(true)

  const after = await deliver(body, { secret: fresh, previous: null })
  expect(verify(after, fresh)).toHaveProperty('event')
  expect(isSigned(after, fresh)).toBe(true)
  expect(() => verify(after, old)).toThrow('No matching signature')
  expect(isSigned(after, old)).toBe(false)
})

test('an altered, moved or old delivery is verified by no check', async () => {
  const secret = newWebhookSecret()
  const arrived = await deliver(body, { secret })
  const altered = { ...arrived, body: Buffer.from(body.toString().replace('5e3', '5e4')) }
  expect(() => verify(altered, secret)).toThrow('No matching signature')
  expect(isSigned(altered, secret)).toBe(false)
  const later = String(Number(arrived.headers['webhook-timestamp']) + 60)
  for (const change of [{ 'webhook-id': 'evt_8' }, { 'webhook-timestamp': later }]) {
    const moved = { ...arrived, headers: { ...arrived.headers, ...change } }
    expect(() => verify(moved, secret)).toThrow('No matching signature')
  }
  const stale = await deliver(body, { secret }, new Date(Date.now() - 10 * 60_000))
  expect(() => verify(stale, secret)).toThrow('too old')
})

test('a secret has 256 random bits and does not print', () => {
  const secrets = Array.from({ length: 100 }, newWebhookSecret)
  expect(new Set(secrets.map((secret) => secret.reveal())).size).toBe(100)
  for (const secret of secrets) {
    expect(secret.reveal()).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(String(secret) + JSON.stringify({ secret })).not.toContain(secret.reveal())
  }
})

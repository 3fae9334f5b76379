import { createHmac, timingSafeEqual } from 'node:crypto'
import type { CheckoutSettings } from '../config/operators.ts'
import { readSession } from './checkout-session-wire.ts'
import { parseJson } from './http-client.ts'
import type { CallbackHint, CallbackOutcome, RawCallback } from './operator.ts'
import { wireRecord } from './wire-record.ts'

const windowMs = 5 * 60 * 1_000
/**
 * The most signatures of one webhook that are checked. An operator that changes its key sends one for each
 * key.
 */
const signaturesMax = 8

/**
 * Reads a webhook of the checkout protocol. The operator signs the time and the bytes of the body with a
 * shared key.
 */
export function parseCheckoutCallback(raw: RawCallback, settings: CheckoutSettings): CallbackOutcome {
  if (raw.pathToken !== 'webhook') return { kind: 'rejected', why: 'path_token' }
  const signature = readSignature(raw.headers[settings.signatureHeader.toLowerCase()])
  if (!signature || !isSigned(signature, raw.body, settings)) return { kind: 'rejected', why: 'signature' }
  const ageMs = raw.receivedAt.getTime() - Number(signature.at) * 1_000
  if (Math.abs(ageMs) > windowMs) return { kind: 'rejected', why: 'stale' }
  const event = wireRecord(parseJson(raw.body))
  const [id, type] = [event?.text('id'), event?.text('type')]
  if (!event || id === undefined || type === undefined) return { kind: 'rejected', why: 'unreadable' }
  if (!types.has(type)) {
    return { kind: 'ignored', eventType: type }
  }
  const session = readSession(event.record('data'), settings.launchUrlField)
  if (!session) return { kind: 'rejected', why: 'unreadable' }
  const clientRef = session.record.text('client_reference')
  return {
    kind: 'hint',
    dedupeKey: id,
    operationId: null,
    find: { sessionId: session.id, ...(clientRef === undefined ? {} : { clientRef }) },
    trust: 'signed',
    says: claims[session.stands],
  }
}

const types = new Set([
  'checkout.session.completed',
  'checkout.session.payment_failed',
  'checkout.session.refunded',
])

/**
 * The claim of a callback. It depends on the state of the session and not on the type of the event, because a
 * session stays open after a failed payment.
 */
const claims = {
  open: 'pending',
  unclear: 'pending',
  paid: 'settled',
  reversed: 'reversed',
  failed: 'refused',
} as const satisfies Record<string, CallbackHint['says']>

interface Signature {
  at: string
  /** HMAC-SHA-256 digests, one for each key that the operator uses. */
  values: readonly Buffer[]
}

/** Reads `t=<unix seconds>,v1=<hex>[,v1=<hex>…]`; undefined if the time is absent or malformed. */
function readSignature(header: string | undefined): Signature | undefined {
  const parts = (header ?? '').split(',').map((part) => part.trim().split('='))
  const at = parts.find(([name]) => name === 't')?.[1]
  const values = parts.flatMap(([name, value]) => (name === 'v1' && value ? [Buffer.from(value, 'hex')] : []))
  return at !== undefined && /^\d{1,12}$/.test(at)
    ? { at, values: values.slice(0, signaturesMax) }
    : undefined
}

/**
 * True if one of the signatures was made with one of our keys. The time of a comparison does not depend on
 * how many bytes of the signature are right.
 */
function isSigned({ at, values }: Signature, body: Uint8Array, settings: CheckoutSettings): boolean {
  const expected = settings.webhookSecrets.map((secret) =>
    createHmac('sha256', secret.reveal()).update(at).update(body).digest(),
  )
  return expected.some((digest) =>
    values.some((value) => value.length === digest.length && timingSafeEqual(value, digest)),
  )
}

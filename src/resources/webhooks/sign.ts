import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { Secret } from '../../shared/secret.ts'
import { apiVersion } from '../../shared/version.ts'

/** The secrets of an endpoint, as the text that its merchant got. */
export interface SigningSecrets {
  secret: Secret
  /** The old secret that a rotation replaced, as long as it is still valid. */
  previous?: Secret | null
}

const prefix = 'whsec_'
const secretBytes = 32

/** Makes a new secret: 256 random bits in the form of Standard Webhooks. */
export function newWebhookSecret(): Secret {
  return new Secret(prefix + randomBytes(secretBytes).toString('base64'))
}

/**
 * Makes the headers of one attempt. `X-Service-Signature` is the HMAC-SHA-256 of the body in hex; the key is
 * the text of the secret. The headers `webhook-...` are those of Standard Webhooks, which also cover id and
 * time. While an old secret is valid, `X-Service-Signature` uses the old secret, `X-Service-Signature-Next`
 * the new one, and `webhook-signature` has a signature of each.
 * @param at real time: receivers compare it with their own clock, while a sandbox's clock may be moved
 * @see docs/design/events.md#deliveries
 */
export function signedHeaders(
  event: { id: string; type: string },
  body: Uint8Array,
  { secret, previous }: SigningSecrets,
  at: Date,
): Record<string, string> {
  const seconds = String(Math.floor(at.getTime() / 1_000))
  const prolog = `${event.id}.${seconds}.`
  const secrets = previous ? [secret, previous] : [secret]
  return {
    'content-type': 'application/json',
    'user-agent': `merchant-payments-webhooks/${apiVersion}`,
    'x-service-event': event.type,
    'x-service-signature': bodySignature(body, previous ?? secret),
    ...(previous && { 'x-service-signature-next': bodySignature(body, secret) }),
    'webhook-id': event.id,
    'webhook-timestamp': seconds,
    'webhook-signature': secrets.map((one) => standardSignature(prolog, body, one)).join(' '),
  }
}

function bodySignature(body: Uint8Array, secret: Secret): string {
  return createHmac('sha256', keysOf(secret).text).update(body).digest('hex')
}

function standardSignature(prolog: string, body: Uint8Array, secret: Secret): string {
  return `v1,${createHmac('sha256', keysOf(secret).bytes).update(prolog).update(body).digest('base64')}`
}

interface Keys {
  /** The text of the secret as it is, for `X-Service-Signature`. */
  text: KeyObject
  /** The bytes that the text encodes, for Standard Webhooks. */
  bytes: KeyObject
}

/** The keys of each secret, made once, because making a key costs six times as much as a signature. */
const keys = new WeakMap<Secret, Keys>()

function keysOf(secret: Secret): Keys {
  const known = keys.get(secret)
  if (known) return known
  const text = secret.reveal()
  const made = {
    text: createSecretKey(text, 'utf8'),
    bytes: createSecretKey(text.slice(prefix.length), 'base64'),
  }
  keys.set(secret, made)
  return made
}

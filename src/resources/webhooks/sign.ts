import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { Secret } from '../../shared/secret.ts'
import { apiVersion } from '../../shared/version.ts'

/** The secrets of an endpoint, as the text that its merchant got. */
export interface SigningSecrets {
  secret: Secret
  /** The one that a rotation replaced, as long as it still holds. */
  previous?: Secret | null
}

const prefix = 'whsec_'
const secretBytes = 32

/** A new secret: 256 random bits in the form of Standard Webhooks. */
export function newWebhookSecret(): Secret {
  return new Secret(prefix + randomBytes(secretBytes).toString('base64'))
}

/**
 * The headers of one attempt. `X-Service-Signature` is the specification's: hex, over the body, keyed with
 * the text of the secret. `webhook-...` are those of Standard Webhooks, which cover id and time too. While a
 * rotation lasts, the first stays with the old secret and the others have both.
 * @param at real time: receivers compare it with their own clock, a sandbox's may be moved
 * @see specification: Delivery
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
  /** The text as it is, for the specification's header. */
  text: KeyObject
  /** The bytes that it stands for, for Standard Webhooks. */
  bytes: KeyObject
}

/** Made once of each secret: a key made of bytes anew costs six times as much as the signature. */
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

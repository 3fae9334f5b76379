import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import type { SimulatorCall, Reply } from './http.ts'
import { header, json } from './http.ts'
import type { OperatorProfile } from './operators.ts'

const tokenLifeS = 3_600
const knownTokensMax = 1_000

/**
 * Answers a token request of the client-credentials grant (RFC 6749, section 4.4). A token is signed, so that
 * it is valid after a restart; its lifetime runs by the machine's time.
 */
export function issueToken(profile: OperatorProfile, call: SimulatorCall): Reply {
  const { clientId, clientSecret } = profile.credentials
  const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64')
  if (!same(header(call, 'authorization'), `Basic ${basic}`)) {
    return json(401, { error: 'invalid_client' }, { 'www-authenticate': `Basic realm="${profile.name}"` })
  }
  const form = new URLSearchParams(call.body)
  if (form.get('grant_type') !== 'client_credentials') return json(400, { error: 'unsupported_grant_type' })
  const expires = Math.floor(Date.now() / 1_000) + tokenLifeS
  const token = {
    access_token: `${expires}.${sign(profile, expires)}`,
    token_type: 'Bearer',
    expires_in: tokenLifeS,
  }
  return json(200, token, { 'cache-control': 'no-store' })
}

/** Tells whether a request of the GSMA protocol has a valid token and the client's key. */
export type ClientCheck = (call: SimulatorCall) => boolean

/**
 * Makes the check of one operator. It verifies the signature of a token once, and then knows the header that
 * holds it.
 */
export function clientCheck(profile: OperatorProfile): ClientCheck {
  const known = new Map<string, number>()
  return (call) => {
    const authorization = header(call, 'authorization')
    const expiresAt = known.get(authorization) ?? expiryOf(profile, call)
    if (expiresAt <= Date.now()) return false
    if (known.size >= knownTokensMax) known.clear()
    known.set(authorization, expiresAt)
    return same(header(call, 'x-api-key'), profile.credentials.apiKey)
  }
}

/** Returns the end of a token's lifetime, in milliseconds since 1970; 0 for a token that is not valid. */
function expiryOf(profile: OperatorProfile, call: SimulatorCall): number {
  const [expires = '', signature = ''] = bearer(call).split('.')
  return same(signature, sign(profile, Number(expires))) ? Number(expires) * 1_000 : 0
}

/** Whether a request of the checkout protocol has the wallet's key. */
export function holdsKey(profile: OperatorProfile, call: SimulatorCall): boolean {
  return same(bearer(call), profile.credentials.apiKey)
}

/** Compares two texts in a time that does not depend on where they differ, only on their lengths. */
export function same(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** Returns the SHA-256 of a text, in hexadecimal digits. */
export function sha256(text: string): string {
  return hash('sha256', text)
}

function bearer(call: SimulatorCall): string {
  return /^Bearer (\S+)$/i.exec(header(call, 'authorization'))?.[1] ?? ''
}

function sign(profile: OperatorProfile, expires: number): string {
  return createHmac('sha256', profile.credentials.clientSecret)
    .update(`${profile.key}:${expires}`)
    .digest('base64url')
}

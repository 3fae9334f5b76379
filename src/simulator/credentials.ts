import { createHmac, timingSafeEqual } from 'node:crypto'
import type { SimulatorCall, Reply } from './http.ts'
import { header, json } from './http.ts'
import type { OperatorProfile } from './operators.ts'

const tokenLifeS = 3_600

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

/** Whether a request of the GSMA protocol has a valid token and the client's key. */
export function isClient(profile: OperatorProfile, call: SimulatorCall): boolean {
  const [expires = '', signature = ''] = bearer(call).split('.')
  const inForce = Number(expires) * 1_000 > Date.now()
  return (
    inForce &&
    same(signature, sign(profile, Number(expires))) &&
    same(header(call, 'x-api-key'), profile.credentials.apiKey)
  )
}

/** Whether a request of the checkout protocol has the wallet's key. */
export function holdsKey(profile: OperatorProfile, call: SimulatorCall): boolean {
  return same(bearer(call), profile.credentials.apiKey)
}

/** Compares two texts in a time that does not depend on where they differ. */
export function same(given: string, expected: string): boolean {
  const digest = (text: string) => createHmac('sha256', 'compare').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}

function bearer(call: SimulatorCall): string {
  return /^Bearer (\S+)$/i.exec(header(call, 'authorization'))?.[1] ?? ''
}

function sign(profile: OperatorProfile, expires: number): string {
  return createHmac('sha256', profile.credentials.clientSecret)
    .update(`${profile.key}:${expires}`)
    .digest('base64url')
}

import { createHmac, generateKeyPairSync, type KeyObject, randomUUID, sign as signBytes } from 'node:crypto'
import { type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'

/** The parts of a token. The forger has them all, so that each token is wrong in one thing only. */
export interface Forge {
  ourKey: KeyObject
  kid: string
  publicJwk: { x: string }
  /** The account, key and key version that its tokens name. */
  names: { sub: string; key: number; kv: number }
}

export interface Forged {
  claims: (changes?: Record<string, unknown>) => JWTPayload
  header: (changes?: Record<string, unknown>) => { alg: string }
  /** Signs a token like ours, with changes; `undefined` leaves a claim out. */
  sign: (
    changes?: Record<string, unknown>,
    headerChanges?: Record<string, unknown>,
    key?: KeyObject,
  ) => Promise<string>
  signAsIs: (anyHeader: unknown) => string
  /** Forged tokens by the error in them. */
  altered: Readonly<Record<string, () => string | Promise<string>>>
}

export const nowS = (): number => Math.floor(Date.now() / 1_000)

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const otherKey = generateKeyPairSync('ed25519').privateKey
const rsaKey = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey
const otherJwk = generateKeyPairSync('ed25519')

/** Lists every way to alter a token; the forge may open later. */
export function openForge(forge: () => Forge): Forged {
  const claims = (changes: Record<string, unknown> = {}): JWTPayload => ({
    iss: 'merchant-payments',
    aud: 'merchant-payments-api',
    ...forge().names,
    scope: 'pay balance',
    iat: nowS(),
    nbf: nowS(),
    exp: nowS() + 3_600,
    jti: randomUUID(),
    ...changes,
  })
  const header = (changes: Record<string, unknown> = {}) => ({
    alg: 'EdDSA',
    typ: 'at+jwt',
    kid: forge().kid,
    ...changes,
  })
  const sign = (
    changes: Record<string, unknown> = {},
    headerChanges: Record<string, unknown> = {},
    key = forge().ourKey,
  ) => new SignJWT(claims(changes)).setProtectedHeader(header(headerChanges)).sign(key)
  const signAsIs = (anyHeader: unknown) => {
    const body = `${encode(anyHeader)}.${encode(claims())}`
    return `${body}.${signBytes(null, Buffer.from(body), forge().ourKey).toString('base64url')}`
  }
  const signHs256 = (secret: Buffer) => {
    const body = `${encode(header({ alg: 'HS256' }))}.${encode(claims())}`
    return `${body}.${createHmac('sha256', secret).update(body).digest('base64url')}`
  }
  const flipped = async (segment: number) => {
    const parts = (await sign()).split('.')
    const bytes = Buffer.from(parts[segment] ?? '', 'base64url')
    bytes[bytes.length - 3] = (bytes[bytes.length - 3] ?? 0) ^ 1
    parts[segment] = bytes.toString('base64url')
    return parts.join('.')
  }

  const altered: Forged['altered'] = {
    'no algorithm': () => new UnsecuredJWT(claims()).encode(),
    'no algorithm, our header, no signature': () => `${encode(header({ alg: 'none' }))}.${encode(claims())}.`,
    'no algorithm, in capitals': () => `${encode(header({ alg: 'NONE' }))}.${encode(claims())}.`,
    'no algorithm, a true signature': async () =>
      `${encode(header({ alg: 'none' }))}.${(await sign()).split('.').slice(1).join('.')}`,
    'HS256 under the public key': () => signHs256(Buffer.from(forge().publicJwk.x, 'base64url')),
    'HS256 under the public key as text': () => signHs256(Buffer.from(JSON.stringify(forge().publicJwk))),
    'HS256 under nothing': () => signHs256(Buffer.alloc(0)),
    'RS256 under a key of their own': () => sign({}, { alg: 'RS256' }, rsaKey),
    'our kid, signed by another key': () => sign({}, {}, otherKey),
    'an embedded key': () =>
      sign({}, { jwk: otherJwk.publicKey.export({ format: 'jwk' }) }, otherJwk.privateKey),
    'an embedded key and no kid': () =>
      sign({}, { kid: undefined, jwk: otherJwk.publicKey.export({ format: 'jwk' }) }, otherJwk.privateKey),
    'a key by address': () => sign({}, { jku: 'https://attacker.example/jwks.json' }, otherKey),
    'a certificate by address': () => sign({}, { x5u: 'https://attacker.example/cert.pem' }, otherKey),
    'no kid': () => sign({}, { kid: undefined }),
    'a kid that walks to a file': () => sign({}, { kid: '../../../../dev/null' }),
    'a kid that speaks SQL': () => sign({}, { kid: `' UNION SELECT 'k1' --` }),
    'a kid of every object': () => sign({}, { kid: '__proto__' }),
    'a kid that is no text': () => `${encode(header({ kid: [forge().kid] }))}.${encode(claims())}.AAAA`,
    'an extension that must be understood': () => signAsIs(header({ crit: ['more'], more: true })),
    'no type': () => sign({}, { typ: undefined }),
    'the type of an identity token': () => sign({}, { typ: 'JWT' }),
    'no issuer': () => sign({ iss: undefined }),
    'another issuer': () => sign({ iss: 'https://attacker.example' }),
    'no audience': () => sign({ aud: undefined }),
    'another audience': () => sign({ aud: 'another-api' }),
    'no subject': () => sign({ sub: undefined }),
    'a subject that is no merchant': () => sign({ sub: '0' }),
    'a subject with more behind it': () => sign({ sub: '12 OR 1=1' }),
    'no key': () => sign({ key: undefined }),
    'a key that is text': () => sign({ key: '34' }),
    'no key version': () => sign({ kv: undefined }),
    'a fractional key version': () => sign({ kv: 5.5 }),
    'no scope': () => sign({ scope: undefined }),
    'scopes as a list': () => sign({ scope: ['pay'] }),
    'no time of issue': () => sign({ iat: undefined }),
    'issued in the future': () => sign({ iat: nowS() + 20, nbf: nowS() }),
    'no beginning': () => sign({ nbf: undefined }),
    'begins in twenty seconds': () => sign({ nbf: nowS() + 20 }),
    'no end': () => sign({ exp: undefined }),
    'ended six seconds ago': () => sign({ exp: nowS() - 6, iat: nowS() - 60, nbf: nowS() - 60 }),
    'an end that is text': () => sign({ exp: '9999999999' }),
    'older than any token may be': () => sign({ iat: nowS() - 721 * 3_600, nbf: nowS() - 721 * 3_600 }),
    'no identity': () => sign({ jti: undefined }),
    'an identity that is no UUID': () => sign({ jti: '1' }),
    'a bit flipped in the header': () => flipped(0),
    'a bit flipped in the payload': () => flipped(1),
    'a bit flipped in the signature': () => flipped(2),
    'no signature': async () => `${(await sign()).split('.').slice(0, 2).join('.')}.`,
    'half of it': async () => (await sign()).slice(0, 120),
    'two dots more': async () => `${await sign()}..`,
    'two parts more': async () => `${await sign()}.AAAA.AAAA`,
    'only dots': () => '..',
    nothing: () => '',
    'no token at all': () => 'mk_0123456789012345678901',
    'not ASCII': () => 'é'.repeat(40),
    '16 KB of the letter A': () => 'A'.repeat(16 * 1_024),
    '16 KB, signed by us': () => sign({ padding: 'A'.repeat(12 * 1_024) }),
  }
  return { claims, header, sign, signAsIs, altered }
}

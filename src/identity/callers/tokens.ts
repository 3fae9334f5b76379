import { hash, type KeyObject, randomUUID } from 'node:crypto'
import { JOSEError, JWKSNoMatchingKey, JWTExpired } from 'jose/errors'
import { SignJWT } from 'jose/jwt/sign'
import { jwtVerify } from 'jose/jwt/verify'
import { z } from 'zod'
import { limits } from '../../shared/limits.ts'
import { providers } from '../../shared/providers.ts'
import type { Actor } from './actor.ts'
import { unauthenticated } from '../../shared/challenge.ts'
import type { KeyLimitSet } from '../keys/key-limits.ts'
import { LruMap } from '../../shared/lru-map.ts'
import { isScope, type Scope } from './scopes.ts'
import type { SigningKeys } from '../secrets/signing-keys.ts'

/** The contents of a new token. */
export interface Grant {
  merchantId: number
  /** The id of the credential: an API key, or a session. */
  apiKeyId: number
  apiKeyVersion: number
  scopes: readonly Scope[]
  keyLimits?: KeyLimitSet | null
  /** The lifetime in hours, from 1 to 720. */
  hours: number
}

export interface IssuedToken {
  token: string
  /** The lifetime in seconds. */
  expiresIn: number
  expiresAt: Date
}

/** Issues access tokens and verifies them. Their times follow the machine's clock, never the sandbox's. */
export interface Tokens {
  issueToken(grant: Grant): Promise<IssuedToken>
  /**
   * Returns the actor of a token. It does not say whether the credential is still valid, or belongs to a
   * person: see `credentials.ts`.
   * @throws DomainError UNAUTHENTICATED where the token was not issued here, or is not valid at this time
   */
  verifyToken(token: string): Promise<Actor>
}

export function createTokens(keys: SigningKeys): Tokens {
  // Checking a signature costs as much as the rest of a request: each token is checked once and then kept.
  const verified = new LruMap<string, Actor>(limits.tokenCacheMax)
  return {
    issueToken: (grant) => issue(keys, grant),
    async verifyToken(token) {
      if (token.length > tokenLengthMax) throw unauthenticated('malformed')
      // The cache is keyed by the token's digest, so that no usable token stays in memory longer than its
      // request.
      const digest = hash('sha256', token, 'base64')
      const seen = verified.get(digest)
      if (!seen) {
        const actor = await verify(keys, token)
        verified.set(digest, actor)
        return actor
      }
      if (!isExpired(seen)) return seen
      verified.delete(digest)
      throw unauthenticated('expired')
    },
  }
}

/** Whether the actor's token has expired, by the machine's clock. */
export function isExpired(actor: Actor): boolean {
  return actor.expiresAt.getTime() + toleranceS * 1_000 <= Date.now()
}

/**
 * The issuer and the audience are the same on every node, and survive a change of port or address: the
 * signing key in the database is what ties a token to this service.
 */
const issuer = 'merchant-payments'
const audience = 'merchant-payments-api'

const algorithm = 'EdDSA'
const type = 'at+jwt'
/** The longest token that is read; issued tokens have about 500 characters. */
const tokenLengthMax = 4 * 1_024
/** The tolerated difference between the clocks of two nodes, in seconds. */
const toleranceS = 5

/** The range of a 32-bit id: a larger one would break the query that the keys of all requests share. */
const id = z.int().positive().max(2_147_483_647)

/**
 * The limits in a token, with amounts as numbers; a limit that is left out does not apply. A token with an
 * unknown limit is refused.
 */
const keyLimitsClaim = z.strictObject({
  maxPerPayment: z.int().transform(BigInt).nullable().default(null),
  maxPerDay: z.int().transform(BigInt).nullable().default(null),
  paymentMethods: z.array(z.enum(providers)).nullable().default(null),
  addresses: z.array(z.string()).nullable().default(null),
})

const claimsOfOurs = z.object({
  sub: z
    .string()
    .regex(/^[1-9]\d{0,9}$/)
    .transform(Number)
    .pipe(id),
  key: id,
  kv: id,
  scope: z.string(),
  keyLimits: keyLimitsClaim.optional(),
  iat: z.int(),
  nbf: z.int(),
  exp: z.int(),
  jti: z.uuid(),
})

async function issue(keys: SigningKeys, grant: Grant): Promise<IssuedToken> {
  const issuedAt = Math.floor(Date.now() / 1_000)
  const expiresIn = grant.hours * 3_600
  const { kid, privateKey } = keys.current
  const token = await new SignJWT({
    key: grant.apiKeyId,
    kv: grant.apiKeyVersion,
    scope: grant.scopes.join(' '),
    ...(grant.keyLimits && { keyLimits: claimOf(grant.keyLimits) }),
  })
    .setProtectedHeader({ alg: algorithm, typ: type, kid })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject(String(grant.merchantId))
    .setJti(randomUUID())
    .setIssuedAt(issuedAt)
    .setNotBefore(issuedAt)
    .setExpirationTime(issuedAt + expiresIn)
    .sign(privateKey)
  return { token, expiresIn, expiresAt: new Date((issuedAt + expiresIn) * 1_000) }
}

function claimOf(keyLimits: KeyLimitSet): object {
  const parts = Object.entries(keyLimits).filter(([, cap]) => cap !== null)
  return Object.fromEntries(parts.map(([name, cap]) => [name, typeof cap === 'bigint' ? Number(cap) : cap]))
}

async function verify(keys: SigningKeys, token: string): Promise<Actor> {
  const payload = await verifiedPayload(keys, token)
  const claims = claimsOfOurs.safeParse(payload)
  if (!claims.success) throw unauthenticated('malformed')
  const { sub, key, kv, scope, keyLimits, exp, jti } = claims.data
  return {
    merchantId: sub,
    apiKeyId: key,
    apiKeyVersion: kv,
    // A scope that this version of the service does not know gives no right.
    scopes: new Set(scope.split(' ').filter(isScope)),
    keyLimits: keyLimits ?? null,
    tokenId: jti,
    expiresAt: new Date(exp * 1_000),
    memberId: null,
    role: null,
    readsOnly: false,
  }
}

/**
 * Verifies a token with one algorithm, and only with the keys in our database: a token's `jwk`, `jku` or
 * `x5u` is never read.
 */
async function verifiedPayload(keys: SigningKeys, token: string): Promise<unknown> {
  const keyOf = async ({ kid }: { kid?: string }): Promise<KeyObject> => {
    const key = typeof kid === 'string' ? await keys.find(kid) : null
    if (!key) throw new JWKSNoMatchingKey()
    return key
  }
  try {
    const { payload } = await jwtVerify(token, keyOf, {
      algorithms: [algorithm],
      typ: type,
      issuer,
      audience,
      clockTolerance: toleranceS,
      // Refuses also a token from the future, and one that was issued longer ago than the longest lifetime.
      maxTokenAge: limits.tokenHoursMax * 3_600,
    })
    return payload
  } catch (error) {
    // The library checks the times last: an expired token has our signature.
    if (error instanceof JOSEError)
      throw unauthenticated(error instanceof JWTExpired ? 'expired' : 'malformed')
    throw error
  }
}

import type pg from 'pg'
import { z } from 'zod'
import { DomainError, type RefusalCode, type RefusalDetail, refusals } from '../../shared/errors.ts'
import { readInput, readTogether, withDefault } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Actor } from './actor.ts'
import { unauthenticated } from '../../shared/challenge.ts'
import { BlockedAddresses } from '../members/blocked-addresses.ts'
import { type KeyLimitSet, keyLimitsInput, narrow } from '../keys/key-limits.ts'
import { CredentialWatch, type CredentialState } from './credentials.ts'
import { type AddressMatcher, addressMatcher, isAddressAllowed } from '../../shared/ip-whitelist.ts'
import { Passwords } from '../members/passwords.ts'
import { takeKeyTry } from '../../limits/key-tries.ts'
import type { RateLimitState } from '../../limits/window.ts'
import { type Role, roles } from '../members/roles.ts'
import { defaultScopes, isScope, lackingScopes, type Scope, scopes } from './scopes.ts'
import {
  isApiKey,
  isApiSecret,
  type MasterSecret,
  secretMatches,
  type StoredSecret,
} from '../secrets/secrets.ts'
import { openSigningKeys } from '../secrets/signing-keys.ts'
import { createTokens, type Tokens } from './tokens.ts'
import { LruMap } from '../../shared/lru-map.ts'
import { sqlFunction } from '../../database/sql-function.ts'

/** The parts that decide who may use the service. */
export interface Access {
  readonly pool: pg.Pool
  readonly master: MasterSecret
  readonly tokens: Tokens
  readonly credentials: CredentialWatch
  readonly lastUses: LastUses
  readonly passwords: Passwords
  readonly blocked: BlockedAddresses
  /** Whether an address is a proxy whose `X-Forwarded-For` is believed: see `clientAddress`. */
  readonly isTrustedProxy: AddressMatcher
  readonly log: Log
  close(): void
}

/**
 * Opens the parts that decide who may use the service.
 * @throws Error where the master secret does not fit the database
 */
export async function openAccess(options: {
  pool: pg.Pool
  master: MasterSecret
  trustedProxies: readonly string[]
  log: Log
}): Promise<Access> {
  const { pool, master, trustedProxies, log } = options
  const tokens = createTokens(await openSigningKeys(pool, master))
  const credentials = new CredentialWatch(pool, log)
  const lastUses = new LastUses(pool, log)
  const passwords = new Passwords(master.passwordPepper)
  const blocked = new BlockedAddresses(pool, log)
  const isTrustedProxy = addressMatcher(trustedProxies)
  const close = () => credentials.close()
  return { pool, master, tokens, credentials, lastUses, passwords, blocked, isTrustedProxy, log, close }
}

/**
 * Finds the caller of a request; returns null for a request without an Authorization header.
 * @throws DomainError UNAUTHENTICATED, then ACCOUNT_INACTIVE, then ADDRESS_NOT_ALLOWED
 * @see docs/design/rules.md#sign-in-and-tokens
 */
export async function authenticate(
  access: Pick<Access, 'tokens' | 'credentials' | 'lastUses' | 'blocked'>,
  request: { authorization: string | undefined; clientAddress: string | null },
): Promise<Actor | null> {
  if (request.authorization === undefined) return null
  // Another scheme, or none behind the word `Bearer`, brings no token (RFC 6750, section 3.1).
  if (!/^Bearer +\S/i.test(request.authorization)) throw unauthenticated('missing')
  const token = /^Bearer +(\S+)$/i.exec(request.authorization)?.[1]
  if (token === undefined) throw unauthenticated('malformed')
  const bearer = await access.tokens.verifyToken(token)
  const state = await access.credentials.check(bearer)
  const { clientAddress } = request
  const problem = addressProblem(state.whitelist, bearer.keyLimits, clientAddress)
  if (problem !== null) {
    access.blocked.record(bearer.merchantId, clientAddress)
    throw new DomainError('ADDRESS_NOT_ALLOWED', problem)
  }
  access.lastUses.record(bearer.apiKeyId, state.lastUsedAt, clientAddress)
  return state.role === null ? bearer : asMember(bearer, state, state.role)
}

/** Returns the reason why a caller may not come from its address; null where it may. */
function addressProblem(
  whitelist: readonly string[],
  keyLimits: KeyLimitSet | null,
  address: string | null,
): string | null {
  if (!isAddressAllowed(whitelist, address)) return refusals.ADDRESS_NOT_ALLOWED.message
  if (isAddressAllowed(keyLimits?.addresses ?? [], address)) return null
  return 'A limit of this API key or token does not allow your IP address.'
}

/** Returns the person of a session, with the rights that the role gives now: the token alone gives none. */
function asMember(bearer: Actor, { memberId }: CredentialState, role: Role): Actor {
  return { ...bearer, memberId, role, readsOnly: roles[role].readsOnly, scopes: scopesOf[role] }
}

const scopesOf = Object.fromEntries(
  Object.entries(roles).map(([role, row]) => [role, new Set<Scope>(row.scopes)]),
) as unknown as Readonly<Record<Role, ReadonlySet<Scope>>>

function isListOfScopes(names: unknown): boolean {
  return Array.isArray(names) && names.length > 0 && names.every((name) => isScope(name))
}

const hoursWords = `must be a whole number of hours from ${limits.tokenHoursMin} to ${limits.tokenHoursMax}`

/** The request of a caller of `POST /auth`. Its options are checked only after the key is verified. */
export const authenticateInput = z.object({
  apiKey: z.string().nullish(),
  apiSecret: z.string().nullish(),
  scopes: withDefault(
    z
      .custom<string[]>(isListOfScopes, `must be a list of one or more of ${scopes.join(', ')}`)
      .transform((names) => [...new Set(names.filter(isScope))])
      .meta({ graphql: z.array(z.string()) }),
    [...defaultScopes],
  ),
  expiresInHours: withDefault(
    z
      .number(hoursWords)
      .refine(
        (hours) => Number.isInteger(hours) && hours >= limits.tokenHoursMin && hours <= limits.tokenHoursMax,
        hoursWords,
      )
      .meta({ graphql: 'Float' }),
    limits.tokenHoursDefault,
  ),
  /** Limits that are narrower than the limits of the key. */
  limits: keyLimitsInput.nullish(),
})
export type AuthenticateInput = z.input<typeof authenticateInput>

export interface ExchangeResult {
  merchantId: number
  apiKeyId: number
  token: string
  /** The lifetime in seconds. */
  expiresIn: number
  expiresAt: Date
  scopes: readonly Scope[]
  /** The limits of the token: the limits of the key, or narrower limits. */
  keyLimits: KeyLimitSet | null
  /** The state of the rate limit, for `rateLimitHeaders('auth', …)`. */
  rateLimit: RateLimitState
}

/**
 * Exchanges an API key and its secret for an access token. It counts the attempt first; every refusal carries
 * the count as `detail.rateLimit`, for the headers of the answer.
 * @throws DomainError RATE_LIMITED, CREDENTIALS_REJECTED, ACCOUNT_INACTIVE, ADDRESS_NOT_ALLOWED, FORBIDDEN,
 *   INVALID_INPUT, checked in this order
 * @see docs/design/rules.md#sign-in-and-tokens
 */
export async function exchangeCredentials(
  access: Access,
  input: AuthenticateInput,
  clientAddress: string | null,
): Promise<ExchangeResult> {
  const key = input.apiKey ?? ''
  const secret = input.apiSecret ?? ''
  const found = isApiKey(key) ? await findKey(access.pool, key) : null
  const taken = await takeKeyTry(access.pool, found?.id ?? null, clientAddress)
  const { counted, rateLimit, retryAfterS } = taken
  const refusal = (code: RefusalCode, message?: string, detail?: RefusalDetail) =>
    new DomainError(code, message, { ...detail, rateLimit })

  if (retryAfterS !== null) throw refusal('RATE_LIMITED', undefined, { retryAfterS })
  // An unknown or revoked key takes as much work as a wrong secret and gets the same message.
  const isVerified =
    isApiSecret(secret) && secretMatches(access.master, secret, found?.isRevoked ? null : found)
  if (!found || !isVerified) {
    access.log.info({ counted, clientAddress }, 'credentials rejected')
    throw refusal('CREDENTIALS_REJECTED')
  }
  await taken.accept()
  if (!found.isMerchantActive) throw refusal('ACCOUNT_INACTIVE')
  const problem = addressProblem(found.whitelist, found, clientAddress)
  if (problem !== null) {
    access.blocked.record(found.merchantId, clientAddress)
    throw refusal('ADDRESS_NOT_ALLOWED', problem)
  }
  await taken.remember()

  const asked = [...new Set(input.scopes ?? defaultScopes)].filter(isScope)
  const lacking = lackingScopes(new Set(found.scopes), asked)
  if (lacking.length > 0) {
    const message = `The API key does not hold the scope ${lacking.join(', ')}.`
    throw refusal('FORBIDDEN', message, { requiredScopes: lacking })
  }
  const options = await readTokenOptions(found, input).catch((error: unknown) => {
    throw error instanceof DomainError ? refusal(error.code, undefined, error.detail) : error
  })
  const { id: apiKeyId, version: apiKeyVersion, merchantId } = found
  access.lastUses.record(apiKeyId, null, clientAddress)
  const issued = await access.tokens.issueToken({ merchantId, apiKeyId, apiKeyVersion, ...options })
  const { scopes: granted, keyLimits } = options
  return { ...issued, merchantId, apiKeyId, scopes: granted, keyLimits, rateLimit }
}

interface FoundKey extends StoredSecret, KeyLimitSet {
  id: number
  merchantId: number
  version: number
  scopes: readonly string[]
  isRevoked: boolean
  isMerchantActive: boolean
  whitelist: readonly string[]
}

/**
 * Reads a key, always from the database: an old pair is refused from the moment when the new one is
 * committed. For an unknown key the function reads the oldest key, and still returns null. Finding no row
 * would take less time and so reveal which keys exist (`npm run auth-timing`).
 */
async function findKey(pool: pg.Pool, key: string): Promise<FoundKey | null> {
  const { rows } = await pool.query<FoundKey & { isKnown: boolean }>({
    name: 'find-api-key',
    text: `SELECT k.key = $1 AS "isKnown", k.id, k.merchant_id AS "merchantId", k.version, k.scopes,
                  k.secret_hash AS "secretHash", k.pepper_id AS "pepperId",
                  k.revoked_at IS NOT NULL OR k.suspended_at IS NOT NULL
                    OR coalesce(k.expires_at <= now(), false) AS "isRevoked",
                  m.status = 'active' AS "isMerchantActive", m.ip_whitelist AS whitelist,
                  k.max_per_payment AS "maxPerPayment", k.max_per_day AS "maxPerDay",
                  nullif(k.payment_methods, '{}')::text[] AS "paymentMethods",
                  nullif(k.addresses, '{}') AS addresses
           FROM api_key k JOIN merchant m ON m.id = k.merchant_id
           WHERE k.id = (
             SELECT id FROM (
               (SELECT id, true AS asked FROM api_key WHERE key = $1)
               UNION ALL (SELECT id, false FROM api_key ORDER BY id LIMIT 1)
             ) AS candidate ORDER BY asked DESC LIMIT 1)`,
    values: [key],
  })
  return rows[0]?.isKnown ? rows[0] : null
}

interface TokenOptions {
  scopes: readonly Scope[]
  hours: number
  keyLimits: KeyLimitSet | null
}

/**
 * Reads the options of a token. It lists the problems of all fields at once.
 * @throws DomainError INVALID_INPUT
 */
async function readTokenOptions(key: FoundKey, input: AuthenticateInput): Promise<TokenOptions> {
  const [asked, keyLimits] = await readTogether(
    () => readInput(authenticateInput.omit({ limits: true }), input),
    () => narrow(key, readInput(authenticateInput.pick({ limits: true }), input).limits ?? null),
  )
  return { scopes: asked.scopes, hours: asked.expiresInHours, keyLimits }
}

const recordLastUse = sqlFunction('record_last_use', {
  takes: { credential: 'int', address: 'text?', everyMs: 'int', idleMs: 'int' },
  gives: 'void',
})

/**
 * Records when and from where each credential was last used: at most once a minute, without making the
 * request wait.
 */
export class LastUses {
  readonly #pool: pg.Pool
  readonly #log: Log
  readonly #recordedAt = new LruMap<number, number>(limits.tokenCacheMax)

  constructor(pool: pg.Pool, log: Log) {
    this.#pool = pool
    this.#log = log
  }

  /** @param known the time of the last use that this process knows; other processes record uses too */
  record(apiKeyId: number, known: Date | null, address: string | null): void {
    const now = Date.now()
    const at = Math.max(known?.getTime() ?? 0, this.#recordedAt.get(apiKeyId) ?? 0)
    if (now - at < everyMs) return
    this.#recordedAt.set(apiKeyId, now)
    recordLastUse(this.#pool, { credential: apiKeyId, address, everyMs, idleMs }).catch((error: unknown) =>
      this.#log.warn({ err: error }, 'the use of a credential was not recorded'),
    )
  }
}

/** The shortest time between two records of the use of a credential. */
const everyMs = 60_000
const { sessionIdleMs: idleMs } = limits

import type pg from 'pg'
import { DomainError } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import type { Log } from '../../telemetry/log.ts'
import { type Actor, actorOf } from './actor.ts'
import { unauthenticated } from '../../shared/challenge.ts'
import type { BlockedAddresses } from '../members/blocked-addresses.ts'
import { isAddressAllowed } from '../../shared/ip-whitelist.ts'
import { LruMap } from '../../shared/lru-map.ts'
import type { Role } from '../members/roles.ts'
import { isExpired } from './tokens.ts'
import { waits } from '../../shared/waits.ts'

/**
 * The time for which the known state of a credential is used without a new query. It is short because a
 * revoked key, token or account must be refused everywhere within a second
 * (see docs/design/rules.md#sign-in-and-tokens).
 */
export const credentialFreshMs = 400

/** The reason why an actor may not go on. */
export type RevocationReason = 'expired' | 'revoked' | 'ACCOUNT_INACTIVE' | 'ADDRESS_NOT_ALLOWED'

/** Returns the refusal that tells the reason to the actor. */
export function revocationRefusal(why: RevocationReason): DomainError {
  return why === 'expired' || why === 'revoked' ? unauthenticated(why) : new DomainError(why)
}

/**
 * Knows whether the credentials behind valid tokens are still valid, at most `credentialFreshMs` late. Only
 * one query runs at a time: all credentials that are asked for while it runs share the next query.
 */
export class CredentialWatch {
  readonly #pool: pg.Pool
  readonly #log: Log
  readonly #known = new LruMap<number, Known>(limits.tokenCacheMax)
  readonly #watchers = new Set<Watcher>()
  readonly #interval: NodeJS.Timeout
  #next: Map<number, PromiseWithResolvers<KeyState | null>> = new Map()
  #isLoading = false
  #isRechecking = false

  constructor(pool: pg.Pool, log: Log) {
    this.#pool = pool
    this.#log = log
    this.#interval = setInterval(() => void this.#recheck(), credentialFreshMs).unref()
  }

  /**
   * Checks that the actor's credential is current and the merchant active.
   * @throws DomainError UNAUTHENTICATED, ACCOUNT_INACTIVE
   */
  async check(actor: Actor): Promise<CredentialState> {
    const state = await this.#stateOf(actor.apiKeyId)
    const ending = revocationOf(actor, state)
    if (ending || !state) throw revocationRefusal(ending ?? 'revoked')
    return state
  }

  /**
   * Calls the listener once, within a second, when the actor may not go on: the token expired, the key was
   * regenerated or revoked, the session ended, the merchant was deactivated, or the address was removed from
   * the whitelist.
   * @returns the function that ends the watch
   */
  onRevoked(
    actor: Actor,
    clientAddress: string | null,
    listener: (why: RevocationReason) => void,
  ): () => void {
    const watcher: Watcher = { actor, clientAddress, listener }
    this.#watchers.add(watcher)
    return () => this.#watchers.delete(watcher)
  }

  /** Forgets the state of a credential, so that the next check reads the database. */
  forget(apiKeyId: number): void {
    this.#known.delete(apiKeyId)
  }

  close(): void {
    clearInterval(this.#interval)
    this.#watchers.clear()
  }

  #stateOf(apiKeyId: number): Promise<KeyState | null> {
    const known = this.#known.get(apiKeyId)
    const now = performance.now()
    if (!known || now - known.askedAt >= credentialFreshMs) return this.#ask(apiKeyId)
    known.usedAt = now
    return known.state
  }

  /**
   * Adds the credential to the next query. The age of the state is counted from this moment, although the
   * query reads the state a little later.
   */
  #ask(apiKeyId: number): Promise<KeyState | null> {
    const waiting = this.#next.get(apiKeyId)
    if (waiting) return waiting.promise
    const question = Promise.withResolvers<KeyState | null>()
    const now = performance.now()
    const known = { askedAt: now, usedAt: now, state: question.promise }
    this.#next.set(apiKeyId, question)
    this.#known.set(apiKeyId, known)
    question.promise.catch(() => {
      if (this.#known.get(apiKeyId) === known) this.#known.delete(apiKeyId)
    })
    if (!this.#isLoading) {
      this.#isLoading = true
      setImmediate(() => void this.#load())
    }
    return question.promise
  }

  async #load(): Promise<void> {
    while (this.#next.size > 0) {
      const asked = this.#next
      this.#next = new Map()
      const aging = this.#aging(asked)
      const askedAt = performance.now()
      try {
        const states = await loadStates(this.#pool, [...asked.keys(), ...aging.keys()])
        for (const [id, question] of asked) question.resolve(states.get(id) ?? null)
        for (const [id, known] of aging) {
          // An entry that was forgotten or asked for again meanwhile must not be replaced by an older state.
          if (this.#known.get(id) !== known) continue
          this.#known.set(id, { ...known, askedAt, state: Promise.resolve(states.get(id) ?? null) })
        }
      } catch (error) {
        for (const question of asked.values()) question.reject(error)
      }
    }
    this.#isLoading = false
  }

  /**
   * Returns the credentials in use whose state is soon too old. They share a query that runs in any case, so
   * that a busy service runs a few queries a second and its requests find a fresh state.
   */
  #aging(asked: ReadonlyMap<number, unknown>): Map<number, Known> {
    const now = performance.now()
    const aging = new Map<number, Known>()
    for (const [id, known] of this.#known.entries()) {
      if (aging.size >= agingMax) break
      const isInUse = now - known.usedAt < inUseMs
      if (isInUse && now - known.askedAt > credentialFreshMs / 4 && !asked.has(id)) aging.set(id, known)
    }
    return aging
  }

  /** Checks every watched credential in one query, and calls the listeners whose actor may not go on. */
  async #recheck(): Promise<void> {
    if (this.#watchers.size === 0 || this.#isRechecking) return
    this.#isRechecking = true
    try {
      const groups = Map.groupBy(this.#watchers, (watcher) => watcher.actor.apiKeyId)
      await Promise.all([...groups].map(([apiKeyId, watchers]) => this.#recheckKey(apiKeyId, watchers)))
    } catch (error) {
      // The watchers stay: while the database cannot say which credential was revoked, it gives out no data
      // either.
      this.#log.warn({ err: error }, 'the credentials of open streams could not be checked')
    } finally {
      this.#isRechecking = false
    }
  }

  async #recheckKey(apiKeyId: number, watchers: readonly Watcher[]): Promise<void> {
    const state = await this.#ask(apiKeyId)
    for (const watcher of watchers) {
      const ending = revocationOf(watcher.actor, state) ?? addressRevocation(state, watcher.clientAddress)
      if (ending && this.#watchers.delete(watcher)) watcher.listener(ending)
    }
  }
}

/**
 * Finds out why a statement rejected its caller: reads the key, the account and the whitelist again.
 * @returns the refusal UNAUTHENTICATED or ADDRESS_NOT_ALLOWED
 * @throws DomainError UNAUTHENTICATED, ACCOUNT_INACTIVE
 */
export async function whyTurnedAway(ctx: {
  actor: Actor | null
  clientAddress: string | null
  access: { credentials: CredentialWatch; blocked: BlockedAddresses }
}): Promise<DomainError> {
  const actor = actorOf(ctx)
  const { credentials, blocked } = ctx.access
  credentials.forget(actor.apiKeyId)
  const { whitelist } = await credentials.check(actor)
  if (isAddressAllowed(whitelist, ctx.clientAddress)) return unauthenticated('revoked')
  blocked.record(actor.merchantId, ctx.clientAddress)
  return new DomainError('ADDRESS_NOT_ALLOWED')
}

/** The state of a valid credential at this moment. */
export interface CredentialState {
  /** The member of a session, and the role that the member has now (`role`); null for an API key. */
  memberId: number | null
  role: Role | null
  /** The whitelist of the merchant's account. */
  whitelist: readonly string[]
  lastUsedAt: Date | null
}

interface KeyState extends CredentialState {
  merchantId: number
  version: number
  /**
   * True also where the credential has expired, or a session's member is not active or was idle for too long.
   */
  isRevoked: boolean
  isMerchantActive: boolean
}

interface Known {
  askedAt: number
  usedAt: number
  state: Promise<KeyState | null>
}

interface Watcher {
  actor: Actor
  clientAddress: string | null
  listener: (why: RevocationReason) => void
}

function revocationOf(actor: Actor, state: KeyState | null): RevocationReason | null {
  const isCurrent = state?.version === actor.apiKeyVersion && state.merchantId === actor.merchantId
  if (isExpired(actor)) return 'expired'
  if (!isCurrent || state.isRevoked) return 'revoked'
  return state.isMerchantActive ? null : 'ACCOUNT_INACTIVE'
}

function addressRevocation(state: KeyState | null, address: string | null): RevocationReason | null {
  return isAddressAllowed(state?.whitelist ?? [], address) ? null : 'ADDRESS_NOT_ALLOWED'
}

/** Choice: a credential that was used within this time will probably be used again. */
const inUseMs = 10_000
const agingMax = 1_000

async function loadStates(pool: pg.Pool, apiKeyIds: number[]): Promise<Map<number, KeyState>> {
  const query: pg.QueryConfig & { query_timeout: number } = {
    name: 'credential-states',
    query_timeout: waits.credentialsMs,
    text: `SELECT k.id, k.merchant_id AS "merchantId", k.version, k.member_id AS "memberId", t.role,
                  k.last_used_at AS "lastUsedAt", m.status = 'active' AS "isMerchantActive",
                  m.ip_whitelist AS whitelist,
                  k.revoked_at IS NOT NULL OR coalesce(k.expires_at <= now(), false)
                    OR (k.member_id IS NOT NULL AND (t.status <> 'active'
                      OR coalesce(k.last_used_at, k.created_at) < now() - $2 * interval '1 millisecond'))
                    AS "isRevoked"
           FROM credential k JOIN merchant m ON m.id = k.merchant_id
           LEFT JOIN team_member t ON t.id = k.member_id
           WHERE k.id = ANY($1::int[])`,
    values: [apiKeyIds, limits.sessionIdleMs],
  }
  const { rows } = await pool.query<KeyState & { id: number }>(query).catch((error: Error) => {
    // The query only reads: nothing was written, so the caller may try again.
    const isLate = error.message === 'Query read timeout'
    throw isLate ? new DomainError('OVERLOADED', undefined, { retryAfterS: limits.overloadRetryS }) : error
  })
  return new Map(rows.map(({ id, ...state }) => [id, state]))
}

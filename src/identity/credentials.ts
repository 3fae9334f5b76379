import type pg from 'pg'
import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import type { Log } from '../telemetry/log.ts'
import { type Actor, actorOf } from './actor.ts'
import type { BlockedAddresses } from './blocked-addresses.ts'
import { isAddressAllowed } from '../shared/ip-whitelist.ts'
import { LruMap } from '../shared/lru-map.ts'
import type { Role } from './roles.ts'
import { isExpired } from './tokens.ts'

/**
 * How long what is known of a credential is believed: a revoked key, token or account is dead everywhere
 * within a second (see docs/design/rules.md#sign-in-and-tokens).
 */
export const credentialFreshMs = 400

/** Why an actor may not go on. */
export type RevocationReason = 'UNAUTHENTICATED' | 'ACCOUNT_INACTIVE' | 'ADDRESS_NOT_ALLOWED'

/**
 * Knows whether the keys behind valid tokens still live, never more than `credentialFreshMs` late.
 * Every key that is asked about while a query runs shares the next one: there is only one at a time.
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
   * Makes sure that the actor's credential is current and its merchant active.
   * @throws DomainError UNAUTHENTICATED, ACCOUNT_INACTIVE
   */
  async check(actor: Actor): Promise<CredentialState> {
    const state = await this.#stateOf(actor.apiKeyId)
    const ending = revocationOf(actor, state)
    if (ending || !state) throw new DomainError(ending ?? 'UNAUTHENTICATED')
    return state
  }

  /**
   * Calls the listener, once and within a second, when the actor may not go on: the token expired, the key
   * was regenerated or revoked, the session ended, the merchant was deactivated, or the address taken off the
   * whitelist.
   * @returns what ends the watch
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

  /** Forgets what this process knows about a key: the next question goes to the database. */
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

  /** Puts the key into the next query. What is known counts from now on, though the answer is younger. */
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
          // What was forgotten or asked again meanwhile must not become older.
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
   * The keys in use that will have to be asked about soon: they share a query that is made anyway, so that a
   * busy service asks a few times a second and its requests find the answer.
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

  /** Asks about every watched key in one query, and tells the listeners whose actor may not go on. */
  async #recheck(): Promise<void> {
    if (this.#watchers.size === 0 || this.#isRechecking) return
    this.#isRechecking = true
    try {
      const groups = Map.groupBy(this.#watchers, (watcher) => watcher.actor.apiKeyId)
      await Promise.all([...groups].map(([apiKeyId, watchers]) => this.#recheckKey(apiKeyId, watchers)))
    } catch (error) {
      // Whoever is watched stays: a database that cannot say who was revoked gives nobody data either.
      this.#log.warn({ err: error }, 'credentials could not be checked again')
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
 * Why a statement rejected its caller: reads the key, the account and the whitelist again.
 * @returns UNAUTHENTICATED or ADDRESS_NOT_ALLOWED
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
  if (isAddressAllowed(whitelist, ctx.clientAddress)) return new DomainError('UNAUTHENTICATED')
  blocked.record(actor.merchantId, ctx.clientAddress)
  return new DomainError('ADDRESS_NOT_ALLOWED')
}

/** What is true of a living credential at this moment. */
export interface CredentialState {
  /** Of a session: whose it is, and what role the person has now. */
  memberId: number | null
  role: Role | null
  /** The merchant's. */
  whitelist: readonly string[]
  lastUsedAt: Date | null
}

interface KeyState extends CredentialState {
  merchantId: number
  version: number
  /** Also: its time is over. */
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
  if (!isCurrent || state.isRevoked || isExpired(actor)) return 'UNAUTHENTICATED'
  return state.isMerchantActive ? null : 'ACCOUNT_INACTIVE'
}

function addressRevocation(state: KeyState | null, address: string | null): RevocationReason | null {
  return isAddressAllowed(state?.whitelist ?? [], address) ? null : 'ADDRESS_NOT_ALLOWED'
}

/** A key that was used within this time will be used again. */
const inUseMs = 10_000
const agingMax = 1_000

/** Everybody waits for the one query: on a connection that went silent it must not wait for ever. */
const queryTimeoutMs = 3_000

async function loadStates(pool: pg.Pool, apiKeyIds: number[]): Promise<Map<number, KeyState>> {
  const query: pg.QueryConfig & { query_timeout: number } = {
    name: 'credential-states',
    query_timeout: queryTimeoutMs,
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
    // Only read: nothing was written, and the caller may come again.
    const isLate = error.message === 'Query read timeout'
    throw isLate ? new DomainError('OVERLOADED', undefined, { retryAfterS: limits.overloadRetryS }) : error
  })
  return new Map(rows.map(({ id, ...state }) => [id, state]))
}

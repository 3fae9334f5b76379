import type pg from 'pg'
import { transact } from '../database/transact.ts'
import { limits } from '../shared/limits.ts'
import type { Log } from '../telemetry/log.ts'
import { addressBlock } from '../shared/ip-whitelist.ts'
import { takeHit } from '../limits/window.ts'
import { LruMap } from '../shared/lru-map.ts'
import { recordAccess } from './record-access.ts'

/** Alerts of addresses that were turned away, in the window of `POST /auth`: of each and of all. Choice. */
const blockedAlertsPerAddressMax = 1
const blockedAlertsPerMerchantMax = 10

/**
 * Tells a merchant's log that somebody with a good credential came from an address off the whitelist
 * (`security_alert`, `ip_blocked`): once for each address in a while, of many addresses the first. Nobody
 * waits for it.
 */
export class BlockedAddresses {
  readonly #pool: pg.Pool
  readonly #log: Log
  /** What this process told of needs no look into the database. */
  readonly #reportedAt = new LruMap<string, number>(limits.windowNamesMax)

  constructor(pool: pg.Pool, log: Log) {
    this.#pool = pool
    this.#log = log
  }

  record(merchantId: number, address: string | null): void {
    const name = `blocked:${merchantId}:${addressBlock(address)}`
    const now = performance.now()
    if (now - (this.#reportedAt.get(name) ?? Number.NEGATIVE_INFINITY) < windowMs) return
    this.#reportedAt.set(name, now)
    this.#report(name, merchantId, address).catch((error: unknown) =>
      this.#log.warn({ err: error }, 'a blocked address was not told of'),
    )
  }

  async #report(name: string, merchantId: number, address: string | null): Promise<void> {
    await transact({ pool: this.#pool }, async (tx) => {
      const here = await takeHit(tx, name, { max: blockedAlertsPerAddressMax, windowMs })
      if (!here.allowed) return
      const max = blockedAlertsPerMerchantMax
      const all = await takeHit(tx, `blocked:${merchantId}`, { max, windowMs })
      if (!all.allowed) return
      const from = address ?? 'an unknown address'
      const message = `A valid credential was used from ${from}, which is not on the whitelist.`
      const alert = { kind: 'ip_blocked', message, ...(address !== null && { ip: address }) }
      await recordAccess(tx, { merchant: merchantId, kind: 'security_alert', what: alert })
    })
  }
}

/** Choice: as long as attempts at a secret are counted. */
const windowMs = limits.authWindowMs

import type pg from 'pg'
import { transact } from '../../database/transact.ts'
import { limits } from '../../shared/limits.ts'
import type { Log } from '../../telemetry/log.ts'
import { addressBlock } from '../../shared/ip-whitelist.ts'
import { takeHit } from '../../limits/window.ts'
import { LruMap } from '../../shared/lru-map.ts'
import { recordAccess } from '../changes/record-access.ts'

/**
 * The most alerts about refused addresses in one window: about one address of a merchant, and for the
 * merchant. Choice: a few alerts are enough to warn the merchant.
 */
const blockedAlertsPerAddressMax = 1
const blockedAlertsPerMerchantMax = 10

/**
 * Emits a `security_alert` (`ip_blocked`) when a caller with a valid credential came from an address that the
 * account's whitelist or the key's limits do not allow. In one window a merchant gets at most one alert about
 * each address, and at most ten alerts. The refused request does not wait for the alert.
 */
export class BlockedAddresses {
  readonly #pool: pg.Pool
  readonly #log: Log
  /** The addresses that this process has reported: for these it sends no statement to the database. */
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
      this.#log.warn({ err: error }, 'the alert about a blocked address was not recorded'),
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
      const message =
        `A valid credential was used from ${from}, which the whitelist of the account, or the list of ` +
        'addresses of the key, does not contain.'
      const alert = { kind: 'ip_blocked', message, ...(address !== null && { ip: address }) }
      await recordAccess(tx, { merchant: merchantId, kind: 'security_alert', what: alert })
    })
  }
}

/**
 * The window of these alerts. Choice: as long as the window in which attempts to guess a secret are counted.
 */
const windowMs = limits.authWindowMs

import { AsyncLocalStorage } from 'node:async_hooks'
import pg from 'pg'

/**
 * The role that merchants' own requests read under: of every table it sees the rows of the one merchant that
 * its session is bound to, whatever the statement asks for, and without one none (row-level security, see the
 * migrations).
 */
export const merchantRole = 'payments_merchant'

const merchants = new AsyncLocalStorage<number | null>()

/**
 * Runs `work` on behalf of a merchant: what it and all that it awaits reads through a `MerchantPool` is that
 * merchant's. A promise of Prisma begins when it is awaited: await it inside.
 * @param merchantId null where nobody is signed in: then there is nothing to read
 */
export function asMerchant<Result>(merchantId: number | null, work: () => Result): Result {
  return merchants.run(merchantId, work)
}

/** On whose behalf this runs; null where on nobody's. */
export function currentMerchant(): number | null {
  return merchants.getStore() ?? null
}

type Taken = Parameters<Parameters<pg.Pool['connect']>[0]>

/**
 * A pool whose sessions are bound to the merchant on whose behalf each is taken. One that is bound to the
 * same merchant already costs nothing; another costs one small statement. (design: reliability, section 2)
 */
export class MerchantPool extends pg.Pool {
  readonly #bound = new WeakMap<pg.PoolClient, string>()

  override connect(): Promise<pg.PoolClient>
  override connect(callback: (...taken: Taken) => void): void
  override connect(callback?: (...taken: Taken) => void): Promise<pg.PoolClient> | void {
    if (!callback) {
      const taken = Promise.withResolvers<pg.PoolClient>()
      this.connect((error, client) => (client ? taken.resolve(client) : taken.reject(error)))
      return taken.promise
    }
    // Read here: whoever waits for a session is woken by whoever gives one back, and in its name.
    const merchant = String(currentMerchant() ?? '')
    super.connect((error, client, done) => {
      if (!client || this.#boundTo(client) === merchant) return callback(error, client, done)
      // The simple protocol takes a third less than a prepared statement; digits need no quoting.
      client.query(`SET app.merchant = '${merchant}'`, (failure: Error | null) => {
        if (!failure) {
          this.#bound.set(client, merchant)
          return callback(undefined, client, done)
        }
        // Nobody knows whose it is now.
        done(failure)
        callback(failure, undefined, () => {})
      })
    })
  }

  #boundTo(client: pg.PoolClient): string {
    return this.#bound.get(client) ?? ''
  }
}

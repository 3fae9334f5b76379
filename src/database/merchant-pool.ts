import { AsyncLocalStorage } from 'node:async_hooks'
import pg from 'pg'

/**
 * The database role of merchants' own requests. In tables with rows of merchants it sees only the rows of the
 * merchant that its session is bound to, and none in an unbound session (row-level security, see the
 * migrations).
 */
export const merchantRole = 'payments_merchant'

const merchants = new AsyncLocalStorage<number | null>()

/**
 * Runs `work` on behalf of a merchant: every read of `work` through a `MerchantPool` sees that merchant's
 * rows only. A Prisma promise begins when it is awaited, so await it inside `work`.
 * @param merchantId null where no caller is signed in: then reads return no rows
 */
export function asMerchant<Result>(merchantId: number | null, work: () => Result): Result {
  return merchants.run(merchantId, work)
}

/** Returns the merchant on whose behalf the code runs; null where there is none. */
export function currentMerchant(): number | null {
  return merchants.getStore() ?? null
}

type Taken = Parameters<Parameters<pg.Pool['connect']>[0]>

/**
 * A pool that binds each session to the merchant on whose behalf the session is taken. A session that is
 * bound to this merchant already needs no statement; another session needs a small one (see
 * docs/design/architecture.md#rows-of-one-merchant).
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
    // The merchant is read here, because a waiting `connect` resumes in the async context of the caller that
    // returns a session.
    const merchant = String(currentMerchant() ?? '')
    super.connect((error, client, done) => {
      if (!client || this.#boundTo(client) === merchant) return callback(error, client, done)
      // The simple protocol takes a third less time than a prepared statement; digits need no quoting.
      client.query(`SET app.merchant = '${merchant}'`, (failure: Error | null) => {
        if (!failure) {
          this.#bound.set(client, merchant)
          return callback(undefined, client, done)
        }
        // The merchant that the session is bound to is unknown now, so the session is closed.
        done(failure)
        callback(failure, undefined, () => {})
      })
    })
  }

  #boundTo(client: pg.PoolClient): string {
    return this.#bound.get(client) ?? ''
  }
}

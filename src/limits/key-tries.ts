import { type SqlConnection, sqlFunction } from '../database/sql-function.ts'
import { invariant } from '../shared/invariant.ts'
import { addressBlock } from '../shared/ip-whitelist.ts'
import { limits } from '../shared/limits.ts'
import { takeBackFailures } from './backoff.ts'
import { namesOf, rememberAddress } from './sign-in-waits.ts'
import { hitState, type RateLimitState } from './window.ts'

const takeTry = sqlFunction('take_key_try', {
  takes: {
    counted: 'text',
    account: 'text',
    here: 'text',
    most: 'int',
    windowMs: 'int',
    failuresMost: 'int',
    failuresWindowMs: 'int',
  },
  gives: { allowed: 'boolean', taken: 'int', resetMs: 'bigint', isKnown: 'boolean', waitMs: 'int' },
})

/** One try to sign in with an API key. It counts as a failure until its secret proves right. */
export interface KeyTry {
  /** The names under which the try was counted, for the log. */
  counted: string
  /** The window of the key at this address, for the headers of the answer. */
  rateLimit: RateLimitState
  /** The seconds after which the secret may be checked; null where it may be checked now. */
  retryAfterS: number | null
  /** Takes the failure back, because the secret is right. */
  accept(): Promise<void>
  /** Records that the key signed in from this address. From then on, strangers cannot lock it out there. */
  remember(): Promise<void>
}

/**
 * Begins a try to sign in with an API key, before the secret is checked. All nodes share two counts:
 * - of the key at this address, right and wrong secrets alike: 20 in 15 minutes (1,920 guesses a day);
 * - of wrong secrets of the key over all addresses from which it never signed in: 100 in an hour (2,400
 *   guesses a day).
 * A key knows at most 100 addresses, so there are at most 194,400 guesses a day at one of 2^256 secrets. An
 * unknown key is counted by the address alone, by the same statement, so that the time of the answer does not
 * reveal which keys exist.
 * @param apiKeyId null for an unknown key
 */
export async function takeKeyTry(
  pool: SqlConnection,
  apiKeyId: number | null,
  address: string | null,
): Promise<KeyTry> {
  const block = addressBlock(address)
  const account = apiKeyId === null ? `address ${block}` : `key ${apiKeyId}`
  const counted = apiKeyId === null ? `address:${block}` : `key:${apiKeyId} ${block}`
  const names = namesOf(account, address)
  const policy = { max: limits.authAttemptsMax, windowMs: limits.authWindowMs }
  const [row] = await takeTry(pool, {
    ...names,
    counted: `auth:${counted}`,
    most: policy.max,
    windowMs: policy.windowMs,
    failuresMost: limits.keyFailuresMax,
    failuresWindowMs: limits.keyFailuresWindowMs,
  })
  invariant(row, '`take_key_try` returns one row')
  const rateLimit = hitState(policy, row)
  const waitS = rateLimit.allowed ? Math.ceil(row.waitMs / 1_000) : rateLimit.resetS
  return {
    counted,
    rateLimit,
    retryAfterS: waitS > 0 ? waitS : null,
    async accept() {
      if (row.isKnown) return
      await takeBackFailures(pool, { names: [`key ${names.account}`], waiting: [], forgiven: null })
    },
    remember: () => rememberAddress(pool, account, address),
  }
}

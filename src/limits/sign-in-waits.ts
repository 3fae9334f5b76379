import { hash } from 'node:crypto'
import { type SqlConnection, sqlFunction } from '../database/sql-function.ts'
import { limits } from '../shared/limits.ts'
import { addressBlock } from '../shared/ip-whitelist.ts'
import { type BackoffPolicy, countFailure, countTry, forgiveFailures, takeBackFailures } from './backoff.ts'

/** The bounds of the wait after failed sign-ins. */
const backoff: BackoffPolicy = {
  longestMs: 15 * 60_000,
  forgetMs: 24 * 3_600_000,
  addressFree: limits.signInAddressFailuresFree,
  accountMost: limits.signInAccountFailuresMax,
  windowMs: limits.signInAccountWindowMs,
}

const insertAddress = sqlFunction('remember_sign_in_address', {
  takes: { givenAccount: 'text', givenAddress: 'text', alone: 'boolean' },
  gives: 'void',
})

/** One try to sign in. It counts as a failure until it succeeds. */
export interface Try {
  /** Whether the merchant must be notified if this try fails. */
  mustAlert: boolean
  /**
   * Counts a try of the second factor as a failure, after the password was right and before the code is
   * checked. At a known address it counts nothing, because there the counted sign-in tries already bound the
   * codes that can be tried.
   * @throws DomainError RATE_LIMITED, with the seconds to wait
   */
  takeCode(): Promise<void>
  /**
   * Ends a successful try: the failures of the address at this account are forgotten; other counts fall by
   * one.
   */
  succeed(): Promise<void>
  /** Ends a try that failed for another reason than a wrong password or code: its failure is taken back. */
  forget(): Promise<void>
}

/**
 * Begins a try to sign in. The try is counted as a failure before the credentials are checked. There are
 * three counts, which all nodes share:
 * - of the account at this address: each failure doubles the wait before the next try, up to a quarter of an
 *   hour, which leaves 105 guesses on the first day;
 * - of the address over all accounts: likewise, but the first failures cause no wait, because many people may
 *   share an address;
 * - of the account over all addresses: at most 100 in an hour.
 * At an address from which the account signed in before, only the first count causes a wait, so that
 * strangers cannot lock the member out there; the second count is left as it is. If many tries at one account
 * come at once from one address, one of them is checked, and the others are refused.
 * @param account the e-mail address that is tried, whether there is such an account or not
 * @throws DomainError RATE_LIMITED, with the seconds to wait; then nothing is counted
 */
export async function takeTry(pool: SqlConnection, account: string, address: string | null): Promise<Try> {
  const names = namesOf(account, address)
  const trier = { ...names, block: addressBlock(address) }
  const { isKnown, failuresHere, failuresEverywhere } = await countTry(pool, trier, backoff)
  const waiting = [`here ${names.here}`, ...(isKnown ? [] : [`address ${addressBlock(address)}`])]
  const counted = [...waiting, `account ${names.account}`]
  const alertAt = limits.signInAlertFailures
  return {
    mustAlert: failuresEverywhere === alertAt || (failuresHere === alertAt && failuresEverywhere < alertAt),
    async takeCode() {
      if (isKnown) return
      const name = `code ${names.account}`
      await countFailure(pool, name, { most: limits.secondFactorFailuresMax, windowMs: backoff.windowMs })
      counted.push(name)
    },
    succeed: () => takeBackFailures(pool, { names: counted, waiting, forgiven: `here ${names.here}` }),
    forget: () => takeBackFailures(pool, { names: counted, waiting, forgiven: null }),
  }
}

/**
 * Records that an account signed in from an address. From then on, only failures of the account at this
 * address cause a wait there.
 */
export async function rememberAddress(
  connection: SqlConnection,
  account: string,
  address: string | null,
): Promise<void> {
  const names = namesOf(account, address)
  await insertAddress(connection, { givenAccount: names.account, givenAddress: names.here, alone: false })
}

/** Whether an account signed in from an address before. */
export async function isKnownAddress(
  client: SqlConnection,
  account: string,
  address: string | null,
): Promise<boolean> {
  const names = namesOf(account, address)
  const { rowCount } = await client.query({
    name: 'is-known-address',
    text: 'SELECT FROM sign_in_address WHERE account = $1 AND address = $2',
    values: [names.account, names.here],
  })
  return rowCount === 1
}

/**
 * Clears the failures of an account that has a new password. From now on only the address where the password
 * was chosen counts as known. The waits of other addresses stay.
 */
export async function forgiveAccount(
  connection: SqlConnection,
  account: string,
  address: string | null,
): Promise<void> {
  const names = namesOf(account, address)
  await forgiveFailures(connection, {
    names: [`here ${names.here}`, `account ${names.account}`, `code ${names.account}`],
  })
  await insertAddress(connection, { givenAccount: names.account, givenAddress: names.here, alone: true })
}

/**
 * Returns the names of an account and of the account at an address, as hashes.
 * @param account an e-mail address, or a name without `@` for an API key
 */
export function namesOf(account: string, address: string | null): { account: string; here: string } {
  return {
    account: hash('sha256', account, 'base64'),
    here: hash('sha256', `${account} ${addressBlock(address)}`, 'base64'),
  }
}

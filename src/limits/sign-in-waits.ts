import { hash } from 'node:crypto'
import { type SqlConnection, sqlFunction } from '../database/sql-function.ts'
import { limits } from '../shared/limits.ts'
import { addressBlock } from '../shared/ip-whitelist.ts'
import { type BackoffPolicy, countFailure, countTry, forgiveFailures, takeBackFailures } from './backoff.ts'

/** How long failed sign-ins make the next one wait. */
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

/** One try at signing in, counted as a failure until it is known to be none. */
export interface Try {
  /** Whether this failure is the one that the merchant is told of. */
  mustAlert: boolean
  /**
   * Counts a try at the second factor, once the password was right, before the code is judged. At a known
   * address the count of the password bounds it.
   * @throws DomainError RATE_LIMITED, with the seconds to wait
   */
  takeCode(): Promise<void>
  /** It was right: the address begins anew with this account, and the other counts have one failure less. */
  succeed(): Promise<void>
  /** It was neither right nor wrong: as if it had never been. */
  forget(): Promise<void>
}

/**
 * Takes a turn to try. Failures are counted three times, before anything is judged, over all nodes:
 * - of the account at this address: each doubles the wait before the next, up to a quarter of an hour, which
 *   leaves 105 guesses on the first day;
 * - of the address over all accounts, likewise, but the first ones cost no time: an address is that of many;
 * - of the account over all addresses: so many in an hour.
 * An address from which the account signed in before waits for the first count alone, so that strangers keep
 * nobody out of there. Of many tries at once at one address one is let through.
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

/** Notes that an account signed in from an address, whose failures count for themselves from now on. */
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
 * Lets an account begin anew with a new password. Only the address where it was chosen is known from now on;
 * what strangers have to wait at theirs they still wait.
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

function namesOf(account: string, address: string | null): { account: string; here: string } {
  return {
    account: hash('sha256', account, 'base64'),
    here: hash('sha256', `${account} ${addressBlock(address)}`, 'base64'),
  }
}

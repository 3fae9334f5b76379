import { hash } from 'node:crypto'
import type pg from 'pg'
import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import { addressBlock } from '../shared/ip-whitelist.ts'

/** Failed sign-ins: the longest wait, and when they are forgotten. */
const signInWaitMaxMs = 15 * 60_000
const signInForgetMs = 24 * 3_600_000

/** One try at signing in, counted as a failure until it is known to be none. */
export interface Try {
  /** Whether this failure is the one that the merchant is told of. */
  isTold: boolean
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
export async function takeTry(pool: pg.Pool, account: string, address: string | null): Promise<Try> {
  const names = namesOf(account, address)
  const { rows } = await pool.query<Taken>({
    name: 'take-sign-in-try',
    text: `SELECT is_known AS "isKnown", failures_here AS here, failures_everywhere AS everywhere,
        wait_ms AS "waitMs"
      FROM take_sign_in_try($1, $2, $3, $4, $5, $6, $7, $8)`,
    values: [
      names.account,
      names.here,
      addressBlock(address),
      signInWaitMaxMs,
      signInForgetMs,
      limits.signInAddressFailuresFree,
      limits.signInAccountFailuresMax,
      limits.signInAccountWindowMs,
    ],
  })
  const [taken] = rows
  if (!taken || taken.waitMs > 0) throw tooMany(taken?.waitMs ?? 0)
  const { isKnown, here, everywhere } = taken
  const waiting = [`here ${names.here}`, ...(isKnown ? [] : [`address ${addressBlock(address)}`])]
  const counted = [...waiting, `account ${names.account}`]
  const toldAt = limits.signInAlertFailures
  return {
    isTold: everywhere === toldAt || (here === toldAt && everywhere < toldAt),
    async takeCode() {
      if (isKnown) return
      const name = `code ${names.account}`
      await takeInWindow(pool, name, limits.secondFactorFailuresMax)
      counted.push(name)
    },
    async succeed() {
      await pool.query({
        name: 'forgive-sign-in',
        text: 'DELETE FROM sign_in_wait WHERE name = $1',
        values: [`here ${names.here}`],
      })
      await unfail(pool, counted, waiting)
    },
    forget: () => unfail(pool, counted, waiting),
  }
}

interface Taken {
  isKnown: boolean
  here: number
  everywhere: number
  waitMs: number
}

/** Notes that an account signed in from an address, whose failures count for themselves from now on. */
export async function rememberAddress(
  client: pg.Pool | pg.PoolClient,
  account: string,
  address: string | null,
): Promise<void> {
  const names = namesOf(account, address)
  await client.query(
    `INSERT INTO sign_in_address (account, address) VALUES ($1, $2)
     ON CONFLICT (account, address) DO UPDATE SET seen_at = now()`,
    [names.account, names.here],
  )
}

/** Whether an account signed in from an address before. */
export async function isKnownAddress(
  client: pg.Pool | pg.PoolClient,
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
  client: pg.Pool | pg.PoolClient,
  account: string,
  address: string | null,
): Promise<void> {
  const names = namesOf(account, address)
  await client.query('DELETE FROM sign_in_wait WHERE name = ANY ($1)', [
    [`here ${names.here}`, `account ${names.account}`, `code ${names.account}`],
  ])
  await client.query('DELETE FROM sign_in_address WHERE account = $1', [names.account])
  await rememberAddress(client, account, address)
}

function namesOf(account: string, address: string | null): { account: string; here: string } {
  return {
    account: hash('sha256', account, 'base64'),
    here: hash('sha256', `${account} ${addressBlock(address)}`, 'base64'),
  }
}

/** @throws DomainError RATE_LIMITED */
async function takeInWindow(pool: pg.Pool, name: string, most: number): Promise<void> {
  const taken = await pool.query({
    name: 'take-in-window',
    text: windowSql,
    values: [name, most, limits.signInAccountWindowMs],
  })
  if (taken.rowCount === 1) return
  const { rows } = await pool.query<{ waitMs: number }>(
    `SELECT extract(epoch FROM until - clock_timestamp())::float8 * 1000 AS "waitMs" FROM sign_in_wait
     WHERE name = $1`,
    [name],
  )
  throw tooMany(rows[0]?.waitMs ?? 0)
}

function tooMany(waitMs: number): DomainError {
  const retryAfterS = Math.max(1, Math.ceil(waitMs / 1_000))
  return new DomainError('RATE_LIMITED', `Too many failed tries: wait ${retryAfterS} s.`, { retryAfterS })
}

/** @param waiting those of the names that have to wait no longer; of the others the window goes on */
async function unfail(pool: pg.Pool, names: readonly string[], waiting: readonly string[]): Promise<void> {
  await pool.query({
    name: 'unfail-sign-in',
    text: unfailSql,
    values: [names, waiting],
  })
}

/** In the order of the names, as they are taken: nobody waits for whoever waits for them. */
const unfailSql = `
  UPDATE sign_in_wait AS kept SET failures = greatest(kept.failures - 1, 0),
    until = CASE WHEN kept.name = ANY ($2) THEN clock_timestamp() ELSE kept.until END
  FROM (SELECT name FROM sign_in_wait WHERE name = ANY ($1) ORDER BY name FOR UPDATE) AS locked
  WHERE kept.name = locked.name`

const windowSql = `
  INSERT INTO sign_in_wait AS kept (name, failures, until)
  VALUES ($1, 1, clock_timestamp() + $3::int * interval '1 millisecond')
  ON CONFLICT (name) DO UPDATE SET (failures, until) = (
    SELECT CASE WHEN is_over THEN 1 ELSE kept.failures + 1 END,
      CASE WHEN is_over THEN excluded.until ELSE kept.until END
    FROM (SELECT kept.until <= clock_timestamp() AS is_over) AS was)
  WHERE kept.until <= clock_timestamp() OR kept.failures < $2::int`

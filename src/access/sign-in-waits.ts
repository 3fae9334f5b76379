import { hash } from 'node:crypto'
import type pg from 'pg'
import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import { addressBlock } from './ip-whitelist.ts'

/** One try at signing in, counted as a failure until it is known to be none. */
export interface Try {
  /** How often in a row it has failed for this account, this time included. */
  failures: number
  /** It was right: the account begins anew, and the address has one failure less. */
  succeed(): Promise<void>
  /** It was neither right nor wrong: as if it had never been. */
  forget(): Promise<void>
}

/**
 * Takes a turn to try, of an account and of an address: after each failure the next one waits twice as long,
 * up to a quarter of an hour, and nobody is locked out for ever. An address is that of many people: its first
 * failures cost no time. Counted before anything is judged, over all nodes, so that of many tries at once one
 * is let through.
 * @param account what is tried, whether there is such an account or not
 * @throws DomainError RATE_LIMITED, with the seconds to wait
 */
export async function takeTry(pool: pg.Pool, account: string, address: string | null): Promise<Try> {
  const names = {
    account: `account ${hash('sha256', account, 'base64')}`,
    address: `address ${addressBlock(address)}`,
  }
  const failures = await fail(pool, names.account, 0)
  try {
    await fail(pool, names.address, limits.signInAddressFailuresFree)
  } catch (error) {
    await unfail(pool, [names.account])
    throw error
  }
  return {
    failures,
    async succeed() {
      await pool.query({
        name: 'forgive-account',
        text: 'DELETE FROM sign_in_wait WHERE name = $1',
        values: [names.account],
      })
      await unfail(pool, [names.address])
    },
    forget: () => unfail(pool, [names.account, names.address]),
  }
}

/** Lets an account begin anew, for instance with a new password. */
export async function forgiveAccount(client: pg.Pool | pg.PoolClient, account: string): Promise<void> {
  await client.query('DELETE FROM sign_in_wait WHERE name = $1', [
    `account ${hash('sha256', account, 'base64')}`,
  ])
}

/** @returns the failures in a row, with this one. @throws DomainError RATE_LIMITED */
async function fail(pool: pg.Pool, name: string, free: number): Promise<number> {
  const taken = await pool.query<{ failures: number }>({
    name: 'fail-sign-in',
    text: failSql,
    values: [name, free, limits.signInWaitMaxMs, limits.signInForgetMs],
  })
  const [row] = taken.rows
  if (row) return row.failures
  const { rows } = await pool.query<{ wait: number }>(
    `SELECT extract(epoch FROM until - clock_timestamp())::float8 AS wait FROM sign_in_wait WHERE name = $1`,
    [name],
  )
  const retryAfterS = Math.max(1, Math.ceil(rows[0]?.wait ?? 1))
  throw new DomainError('RATE_LIMITED', `Too many failed tries: wait ${retryAfterS} s.`, { retryAfterS })
}

async function unfail(pool: pg.Pool, names: readonly string[]): Promise<void> {
  await pool.query({
    name: 'unfail-sign-in',
    text: `UPDATE sign_in_wait SET failures = greatest(failures - 1, 0), until = clock_timestamp()
           WHERE name = ANY($1)`,
    values: [names],
  })
}

/** Who has to wait gets no row. The n-th failure that is not free makes the next one wait 2^(n-1) seconds. */
const failSql = `
  INSERT INTO sign_in_wait AS kept (name, failures, until)
  VALUES ($1, 1, clock_timestamp() + CASE WHEN $2::int > 0 THEN interval '0' ELSE interval '1 second' END)
  ON CONFLICT (name) DO UPDATE SET (failures, until) = (
    SELECT n, clock_timestamp() + interval '1 millisecond'
      * CASE WHEN n > $2::int THEN least($3::int, 1000 * power(2, least(n - $2::int - 1, 20))) ELSE 0 END
    FROM (SELECT CASE WHEN kept.until < clock_timestamp() - $4::int * interval '1 millisecond'
      THEN 1 ELSE kept.failures + 1 END AS n) AS next)
  WHERE kept.until <= clock_timestamp()
  RETURNING failures`

import type { Pool } from 'pg'
import { sqlFunction } from '../../database/sql-function.ts'

const sweep = sqlFunction('sweep_people', { takes: { most: 'int' }, gives: 'int' })

/**
 * Deletes sessions a month after their end, e-mails after three months, waits after failed sign-ins a day
 * after their end, and client addresses from which an account did not sign in for 90 days.
 * @returns whether there may be more to do
 */
export async function sweepPeople(pool: Pool, most = peopleSweepMax): Promise<boolean> {
  return (await sweep(pool, { most })) >= most
}

/** The most rows of each kind that one step deletes. */
export const peopleSweepMax = 1_000

import type { Pool } from 'pg'
import { sqlFunction } from '../../database/sql-function.ts'

const sweep = sqlFunction('sweep_people', { takes: { most: 'int' }, gives: 'int' })

/**
 * Deletes sessions a month after their end, e-mails after three months, failed sign-ins of yesterday, and
 * client addresses that were not used for 90 days.
 * @returns whether there is more to do
 */
export async function sweepPeople(pool: Pool, most = peopleSweepMax): Promise<boolean> {
  return (await sweep(pool, { most })) >= most
}

/** Most rows of each kind that one step deletes. */
export const peopleSweepMax = 1_000

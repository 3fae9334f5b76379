import type { Pool } from 'pg'
import { sqlFunction } from '../../database/sql-function.ts'

const sweep = sqlFunction('sweep_people', { takes: {}, gives: 'int' })

/**
 * Deletes sessions a month after their end, e-mails after three months, failed sign-ins of yesterday, and
 * client addresses that were not used for 90 days.
 * @returns whether there is more to do
 */
export async function sweepPeople(pool: Pool): Promise<boolean> {
  return (await sweep(pool, {})) >= sweptAtOnce
}

/** Most rows of each kind that one step deletes: `sweep_people` has the same number. */
const sweptAtOnce = 1_000

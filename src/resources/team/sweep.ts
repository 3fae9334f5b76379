import type { Pool } from 'pg'
import { sqlFunction } from '../../database/sql-function.ts'

const sweep = sqlFunction('sweep_people', { takes: {}, gives: 'int' })

/**
 * Forgets sessions a month after their end, letters after three, and failed sign-ins of yesterday.
 * @returns whether there is more to do
 */
export async function sweepPeople(pool: Pool): Promise<boolean> {
  return (await sweep(pool, {})) >= sweptAtOnce
}

/** Of each kind. */
const sweptAtOnce = 1_000

import type { Pool } from 'pg'

/**
 * Forgets sessions a month after their end, letters after three, and failed sign-ins of yesterday.
 * @returns whether there is more to do
 */
export async function sweepPeople(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query<{ swept: number }>('SELECT sweep_people() AS swept')
  return (rows[0]?.swept ?? 0) >= sweptAtOnce
}

/** Of each kind. */
const sweptAtOnce = 1_000

import type { Pool } from 'pg'

/** Gives the jobs of engines that are gone to those that live. @returns how many engines were gone */
export async function recoverJobs(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ gone: number }>({
    name: 'recover_jobs',
    text: 'SELECT recover_jobs() AS gone',
  })
  return rows[0]?.gone ?? 0
}

import type { Pool } from 'pg'

/**
 * The largest allowed difference between the clocks of a process and its database, and the pause between
 * checks.
 */
const skewMaxMs = 5_000
export const compareClocksEveryMs = 60_000

/**
 * Compares this process's clock with the database's.
 * @returns milliseconds by which the process is ahead, negative where it is behind. The statement read the
 * database's clock at an unknown moment between its start and its end; of all possible values this is the one
 * nearest to 0, so that a slow answer never looks like a wrong clock.
 */
export async function readClockSkew(client: Pick<Pool, 'query'>): Promise<number> {
  const before = Date.now()
  const { rows } = await client.query<{ now: number }>(
    'SELECT round(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now',
  )
  const after = Date.now()
  const now = rows[0]?.now ?? Number.NaN
  return before > now ? before - now : Math.min(0, after - now)
}

/**
 * Refuses to work with a clock that differs from the database's by more than `skewMaxMs`, because tokens,
 * signatures and displayed times depend on it.
 * @throws Error that names the difference and what to do
 */
export async function assertClock(client: Pick<Pool, 'query'>): Promise<void> {
  const skewMs = await readClockSkew(client)
  if (!isSkewed(skewMs)) return
  throw new Error(
    `The clock of this machine is ${describeSkew(skewMs)} the clock of the database server. ` +
      'Set both by NTP (for instance with chrony), then start again.',
  )
}

/** Whether two clocks differ too much to work with. */
export function isSkewed(skewMs: number): boolean {
  return Math.abs(skewMs) > skewMaxMs
}

/** Describes a difference for people: "90061 s ahead of". */
export function describeSkew(skewMs: number): string {
  return `${Math.round(Math.abs(skewMs) / 1_000)} s ${skewMs > 0 ? 'ahead of' : 'behind'}`
}

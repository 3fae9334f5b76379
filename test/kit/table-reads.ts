import type pg from 'pg'

/** Reads of all tables and indexes of a database so far. */
export interface TableReads {
  /** Rows read: by table, through scans and indexes; by index, the entries that its scans returned. */
  read: ReadonlyMap<string, number>
  /** By table: how often it was read from end to end. */
  scans: ReadonlyMap<string, number>
  /** By table: the rows that were added, less those that were deleted. */
  grown: ReadonlyMap<string, number>
}

/**
 * Reads PostgreSQL's counts. Sessions hand in their counts at most once a second.
 * @param sessions the pool whose sessions hand them in now
 */
export async function readTableReads(owner: pg.Pool, sessions: pg.Pool): Promise<TableReads> {
  const all = Array.from({ length: sessions.totalCount }, () =>
    sessions.query('SELECT pg_stat_force_next_flush(), pg_sleep(0.02)'),
  )
  await Promise.all(all)
  const { rows } = await owner.query<{ name: string; read: number; scans: number; grown: number }>(
    `SELECT relname AS name, (seq_tup_read + coalesce(idx_tup_fetch, 0))::float AS read,
       seq_scan::float AS scans, (n_tup_ins - n_tup_del)::float AS grown
     FROM pg_stat_user_tables WHERE schemaname = 'public'`,
  )
  const indexes = await owner.query<{ name: string; read: number }>(
    `SELECT indexrelname AS name, idx_tup_read::float AS read FROM pg_stat_user_indexes
     WHERE schemaname = 'public'`,
  )
  return {
    read: new Map([...rows, ...indexes.rows].map(({ name, read }) => [name, read])),
    scans: new Map(rows.map(({ name, scans }) => [name, scans])),
    grown: new Map(rows.map(({ name, grown }) => [name, grown])),
  }
}

/** Returns the differences of two maps, without those that are zero. */
export function between(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>) {
  const differences = Array.from(after, ([name, count]) => [name, count - (before.get(name) ?? 0)] as const)
  return new Map(differences.filter(([, difference]) => difference !== 0))
}

import type pg from 'pg'

/**
 * How long one result is used, and how long the database may take to answer, in ms. Choice: a monitor that
 * asks every few seconds gets the new state with its next question.
 */
const probeEveryMs = 3_000
const answerMs = 2_000

/**
 * SQL that writes about 300 kB to a temporary file on the database's disk and reads whether the server
 * accepts writes. It leaves no data and needs no write-ahead log. An update of a row would not show a full
 * disk, because the page of the row may have room for it.
 */
const probe = `SET LOCAL work_mem = '64kB';
  SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS "isReadOnly", count(*)
  FROM generate_series(1, 10000)`

interface Probe {
  at: number
  takesWrites: Promise<boolean>
}

const last = new WeakMap<pg.Pool, Probe>()

/** Whether the database accepts writes now. All callers share one probe, at most every three seconds. */
export function takesWrites(pool: pg.Pool): Promise<boolean> {
  const before = last.get(pool)
  if (before && performance.now() - before.at < probeEveryMs) return before.takesWrites
  const question: pg.QueryConfig & { query_timeout: number } = { text: probe, query_timeout: answerMs }
  const looked = pool.query(question).then(
    (answers) => {
      const results = answers as unknown as pg.QueryResult<{ isReadOnly: boolean }>[]
      return results.at(-1)?.rows[0]?.isReadOnly === false
    },
    () => false,
  )
  last.set(pool, { at: performance.now(), takesWrites: looked })
  return looked
}

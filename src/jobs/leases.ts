import type pg from 'pg'
import type { Log } from '../telemetry/log.ts'
import { locks } from '../database/locks.ts'

/**
 * The leases of this process. Of all processes, at most one has the lease of a queue. One database session of
 * this process holds an advisory lock for each lease; PostgreSQL releases the locks when the process dies.
 */
export interface Leases {
  /**
   * The pool for the statements of these queues, so that their work never takes all the sessions that
   * requests need.
   */
  readonly pool: pg.Pool
  /**
   * Runs `work` under the lease of the queue `key`; does nothing where another process has that lease.
   * @param work gets a signal that aborts when the lease is lost
   * @returns the result of `work`; undefined where it did not run
   */
  during<T>(key: number, work: (lost: AbortSignal) => Promise<T>): Promise<T | undefined>
  close(): Promise<void>
}

/** @param pool its sessions are closed with the leases */
export function openLeases(pool: pg.Pool, log: Log): Leases {
  let session: Promise<LeaseSession> | null = null

  async function open(): Promise<LeaseSession> {
    const client = await pool.connect()
    const lost = new AbortController()
    const end = () => {
      if (lost.signal.aborted) return
      lost.abort()
      session = null
      // Ends the session, and so releases its locks.
      client.release(true)
    }
    client.once('end', end)
    client.once('error', (error) => {
      log.warn({ err: error }, 'the session that holds the queue leases is lost; the queues start again')
      end()
    })
    let asked: Promise<unknown> = Promise.resolve()
    const ask = (query: pg.QueryConfig) => {
      const answer = asked.then(() => client.query<{ taken: boolean }>(query))
      asked = answer.catch(() => {})
      return answer
    }
    return { lost: lost.signal, end, ask }
  }

  async function currentSession(): Promise<LeaseSession> {
    session ??= open()
    try {
      return await session
    } catch (error) {
      session = null
      throw error
    }
  }

  return {
    pool,
    async during(key, work) {
      const { lost, end, ask } = await currentSession()
      const { rows } = await ask({
        name: 'take_lease',
        text: 'SELECT pg_try_advisory_lock($1, $2) AS taken',
        values: [locks.queueLease, key],
      })
      if (!rows[0]?.taken) return undefined
      try {
        return await work(lost)
      } finally {
        // A lock that cannot be released ends with its session.
        const values = [locks.queueLease, key]
        await ask({
          name: 'end_lease',
          text: 'SELECT pg_advisory_unlock($1, $2) AS taken',
          values,
        }).catch(end)
      }
    },
    async close() {
      const last = await session?.catch(() => null)
      last?.end()
      await pool.end()
    },
  }
}

interface LeaseSession {
  lost: AbortSignal
  end: () => void
  /** Sends a statement after the earlier ones have ended, because a session runs one at a time. */
  ask: (query: pg.QueryConfig) => Promise<pg.QueryResult<{ taken: boolean }>>
}

import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Log } from '../telemetry/log.ts'
import { locks } from '../database/locks.ts'

const retryMs = 200

/**
 * Shows that an engine is alive: a session of its own holds an advisory lock on the engine's id, and
 * PostgreSQL releases the lock when the process dies. After a lost connection the lock is taken again.
 */
export function showAlive(pool: pg.Pool, engineId: string, log: Log): { close(): Promise<void> } {
  const closing = new AbortController()
  const done = keepLocked(pool, engineId, log, closing.signal)
  return {
    async close() {
      closing.abort()
      await done
    },
  }
}

async function keepLocked(pool: pg.Pool, engineId: string, log: Log, closing: AbortSignal): Promise<void> {
  while (!closing.aborted) {
    try {
      const client = await pool.connect()
      const over = Promise.withResolvers<void>()
      client.once('end', over.resolve)
      client.once('error', () => over.resolve())
      closing.addEventListener('abort', () => over.resolve(), { once: true })
      try {
        await client.query('SELECT pg_advisory_lock($1, hashtext($2))', [locks.jobEngine, engineId])
        if (!closing.aborted) await over.promise
      } finally {
        // Ends the session, and so releases the lock.
        client.release(true)
      }
    } catch (error) {
      log.warn({ err: error }, 'the job engine cannot take its liveness lock; trying again')
    }
    await sleep(retryMs, undefined, { signal: closing }).catch(() => {})
  }
}

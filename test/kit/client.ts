import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import { session } from './session.ts'

/** How long a client may still work at the end of its test before its session is ended. */
const busyMsMax = 1_000

/**
 * Takes a client of a pool until the end of a test, also of one that fails: what it holds then, a lock for
 * example, would hang the next test, or the end of the pool. `release` gives it back earlier.
 */
export async function borrow(pool: pg.Pool): Promise<pg.PoolClient> {
  let lent: pg.PoolClient | undefined
  onTestFinished(async () => {
    if (lent) await giveBack(lent)
  })
  const client = await pool.connect()
  lent = client
  const release = client.release.bind(client)
  client.release = (destroy) => {
    lent = undefined
    release(destroy)
  }
  return client
}

/** Takes a client of a pool for some work, outside of a test too; what the work does not commit is undone. */
export async function withClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    return await work(client)
  } finally {
    await giveBack(client)
  }
}

/** Opens a connection of its own, outside every pool, until the end of a test. */
export async function openClient(connection: string | pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  onTestFinished(() => client.end())
  await client.connect()
  return client
}

/** Undoes what a client has not committed, and closes it. */
async function giveBack(client: pg.PoolClient): Promise<void> {
  const undone = client.query('ROLLBACK').then(
    () => true,
    () => true,
  )
  const isFree = await Promise.race([undone, sleep(busyMsMax, false, { ref: false })])
  if (!isFree) await endSession(client as Session)
  client.release(true)
}

/** The number of the session, which the types of `pg` leave out. */
type Session = pg.PoolClient & { processID: number }

/** A session that waits for a lock does not notice that its client is gone, and keeps its own locks. */
async function endSession({ processID }: Session): Promise<void> {
  const { url } = inject('testServer')
  await session(url, (server) => server.query('SELECT pg_terminate_backend($1, 5000)', [processID]))
}

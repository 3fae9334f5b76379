import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { asRole } from '../../src/database/client.ts'
import { startEmbedded } from '../../src/database/embedded.ts'
import { StuckError } from './stuck.ts'

/** A PostgreSQL with its usual durability that can be killed. */
export interface Postgres {
  /** Its socket folder, which bypasses every proxy. */
  socket: string
  user: string
  /** Kills all its processes (-9) at one moment; it starts again by itself. */
  kill(): void
  /** @throws StuckError where it does not start again, or does not answer */
  ready(): Promise<void>
  /**
   * Reads under the owner's rights, on a connection of its own, all of it in one snapshot.
   * @throws StuckError where no connection comes
   */
  read<T>(work: (client: pg.Client) => Promise<T>): Promise<T>
  stop(): Promise<void>
}

const readyMs = 90_000
/** How long a connection is tried, also while the server is busy or still starts. */
const connectMs = 30_000

export async function startPostgres(dataDir: string, log: (line: string) => void): Promise<Postgres> {
  const server = await startEmbedded({ dataDir, durable: true, log })
  const masterOf = () => Number(readFileSync(join(dataDir, 'cluster/postmaster.pid'), 'utf8').split('\n')[0])
  let killed = 0
  /** The file of its process is missing for a moment. */
  const hasRestarted = () => {
    try {
      return masterOf() !== killed
    } catch {
      return false
    }
  }

  async function connect(): Promise<pg.Client> {
    const deadline = performance.now() + connectMs
    for (;;) {
      const options = { ...asRole(server.connection(), null), connectionTimeoutMillis: connectMs }
      const client = new pg.Client(options)
      client.on('error', () => {})
      try {
        await client.connect()
        return client
      } catch (error) {
        await client.end().catch(() => {})
        if (performance.now() > deadline)
          throw new StuckError('PostgreSQL gives no connection', { cause: error })
      }
      await sleep(20)
    }
  }

  async function read<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = await connect()
    try {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      return await work(client)
    } finally {
      await client.end().catch(() => {})
    }
  }

  const { host, port, user } = server.connection()
  return {
    socket: join(host, `.s.PGSQL.${port}`),
    user,
    kill() {
      killed = masterOf()
      // Stopped first, so that it starts no child between the listing and the kill.
      process.kill(killed, 'SIGSTOP')
      for (const pid of [...childrenOf(killed), killed]) killHard(pid)
    },
    async ready() {
      const deadline = performance.now() + readyMs
      while (!hasRestarted()) {
        if (performance.now() > deadline) throw new StuckError('PostgreSQL does not come back')
        await sleep(20)
      }
      await read((client) => client.query('SELECT 1'))
    },
    read,
    stop: () => server.stop(),
  }
}

function childrenOf(pid: number): number[] {
  try {
    return execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' })
      .split('\n')
      .filter(Boolean)
      .map(Number)
  } catch {
    return []
  }
}

function killHard(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process ended by itself a moment ago.
  }
}

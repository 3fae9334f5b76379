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
  /** @throws Error where it does not answer within 30 s */
  ready(): Promise<void>
  /** Reads under the owner's rights, on a connection of its own, all of it in one snapshot. */
  read<T>(work: (client: pg.Client) => Promise<T>): Promise<T>
  stop(): Promise<void>
}

const readyMs = 30_000

export async function startPostgres(dataDir: string, log: (line: string) => void): Promise<Postgres> {
  const server = await startEmbedded({ dataDir, durable: true, log })
  const masterOf = () => Number(readFileSync(join(dataDir, 'cluster/postmaster.pid'), 'utf8').split('\n')[0])
  let killed = 0

  async function read<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ ...asRole(server.connection(), null), connectionTimeoutMillis: 2_000 })
    client.on('error', () => {})
    try {
      await client.connect()
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
      for (;;) {
        try {
          if (masterOf() !== killed)
            return await read(async (client) => void (await client.query('SELECT 1')))
        } catch (error) {
          if (performance.now() > deadline)
            throw new StuckError('PostgreSQL does not come back', { cause: error })
        }
        await sleep(20)
      }
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

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { startEmbedded } from '../../src/database/embedded.ts'
import { ensureGenerated } from '../../src/database/ensure-generated.ts'
import { databaseUrl } from '../kit/database-url.ts'

/** A durable PostgreSQL that is kept between runs; each run makes databases of its own. */
export interface BenchServer {
  /** The process whose children are all other processes of the server. (Linux only.) */
  postmaster: number
  /** Makes an empty database, or a copy of one whose connections are closed. */
  createDatabase(template?: BenchDatabase): Promise<BenchDatabase>
  close(): Promise<void>
}

export interface BenchDatabase {
  name: string
  url: string
  /** The owner's connections. */
  owner: pg.Pool
  /** Closes the owner's connections, and keeps the database. */
  release(): Promise<void>
  drop(): Promise<void>
}

const dataDir = join(import.meta.dirname, '../../node_modules/.cache/merchant-payments/pg-bench')

/** Starts the server, and removes the databases of runs that have ended. */
export async function openServer(): Promise<BenchServer> {
  ensureGenerated()
  const server = await startEmbedded({ dataDir, durable: true })
  const admin = new pg.Client(server.connection('postgres'))
  await admin.connect()
  const { rows } = await admin.query<{ datname: string }>(
    "SELECT datname FROM pg_database WHERE datname LIKE 'bench\\_%'",
  )
  for (const { datname } of rows) {
    if (!isAlive(Number.parseInt(datname.slice('bench_'.length), 10))) await drop(admin, datname)
  }
  const { rows: own } = await admin.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  let made = 0
  return {
    postmaster: parentOf(own[0]?.pid ?? 0),
    async createDatabase(template) {
      made += 1
      const name = `bench_${process.pid}_${made}`
      await admin.query(
        `CREATE DATABASE ${name} ${template ? `TEMPLATE ${template.name} STRATEGY file_copy` : ''}`,
      )
      // With the rights of the account; the product's sessions ask for their own roles after this.
      const url = withOption(databaseUrl(server.connection(name)), '-c role=none')
      const owner = new pg.Pool({ connectionString: url, max: 2 })
      // A connection may still be open when the database is dropped.
      owner.on('error', () => {})
      const release = async () => {
        if (!owner.ending) await owner.end()
      }
      return {
        name,
        url,
        owner,
        release,
        async drop() {
          await release()
          await drop(admin, name)
        },
      }
    },
    async close() {
      await admin.end()
      await server.stop()
    },
  }
}

function withOption(address: string, option: string): string {
  const url = new URL(address)
  url.searchParams.set('options', option)
  return url.href
}

function drop(admin: pg.Client, name: string): Promise<unknown> {
  return admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
}

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0)
    return true
  } catch {
    return false
  }
}

/** @returns 0 where the kernel does not say */
function parentOf(processId: number): number {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${processId}/status`, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0
  }
}

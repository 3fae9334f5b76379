import { join } from 'node:path'
import pg from 'pg'
import { startEmbedded } from '../../src/database/embedded.ts'
import { ensureGenerated } from '../../src/database/ensure-generated.ts'
import { databaseUrl } from '../kit/database-url.ts'

/** A durable PostgreSQL with an empty database for one run. */
export interface BenchFixture {
  url: string
  /** The owner's connections. */
  owner: pg.Pool
  /** Every process of the server, as the system numbers them. */
  postgresProcesses(): Promise<number[]>
  close(): Promise<void>
}

const dataDir = join(import.meta.dirname, '../../node_modules/.cache/merchant-payments/pg-bench')

/** The server is kept between runs; each run has its own database, and removes what dead ones left. */
export async function openFixture(): Promise<BenchFixture> {
  ensureGenerated()
  const server = await startEmbedded({ dataDir, durable: true })
  const admin = new pg.Client(server.connection('postgres'))
  await admin.connect()
  const { rows } = await admin.query<{ datname: string }>(
    "SELECT datname FROM pg_database WHERE datname LIKE 'bench\\_%'",
  )
  for (const { datname } of rows) {
    if (!isAlive(Number(datname.slice('bench_'.length)))) await drop(admin, datname)
  }
  const name = `bench_${process.pid}`
  await admin.query(`CREATE DATABASE ${name}`)
  // With the rights of the account; the product's sessions ask for their own roles after this.
  const url = withOption(databaseUrl(server.connection(name)), '-c role=none')
  const owner = new pg.Pool({ connectionString: url, max: 2 })
  // Connections that are still open when the database is dropped.
  owner.on('error', () => {})
  return {
    url,
    owner,
    async postgresProcesses() {
      const { rows: backends } = await owner.query<{ pid: number }>('SELECT pid FROM pg_stat_activity')
      return backends.map(({ pid }) => pid)
    },
    async close() {
      await owner.end()
      await drop(admin, name)
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

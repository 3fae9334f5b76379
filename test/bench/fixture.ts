import type pg from 'pg'
import { openServer } from './server.ts'

/** A durable PostgreSQL with an empty database for one run. */
export interface BenchFixture {
  url: string
  /** The owner's connections. */
  owner: pg.Pool
  /** Every process of the server, as the system numbers them. */
  postgresProcesses(): Promise<number[]>
  close(): Promise<void>
}

/** The server is kept between runs; each run has its own database, and removes what dead ones left. */
export async function openFixture(): Promise<BenchFixture> {
  const server = await openServer()
  const database = await server.createDatabase()
  const { url, owner } = database
  return {
    url,
    owner,
    async postgresProcesses() {
      const { rows } = await owner.query<{ pid: number }>('SELECT pid FROM pg_stat_activity')
      return rows.map(({ pid }) => pid)
    },
    async close() {
      await database.drop()
      await server.close()
    },
  }
}

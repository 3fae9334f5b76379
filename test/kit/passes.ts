import type pg from 'pg'
import type { Invariant, LedgerProblem } from '../../src/ledger/verify.ts'
import { proveDueSlice } from '../../src/ledger/audit.ts'
import type { TestDatabase } from './database.ts'

/** Runs the rolling pass that is due over all the books, `rows` rows per slice. @returns the problems */
export async function passOver({ database }: TestDatabase, rows = 1_000): Promise<LedgerProblem[]> {
  const found: LedgerProblem[] = []
  for (;;) {
    const slice = await proveDueSlice(database, { rows })
    if (!slice) throw new Error('No pass is due.')
    found.push(...slice.problems)
    if (slice.stage === 'done') return found
  }
}

/** Proves as the service does: the new rows, and a pass by slices of `rows`. @returns the problems */
export async function provenBySlices(client: pg.PoolClient, rows: number): Promise<Set<Invariant>> {
  const recent = await client.query<LedgerProblem>('SELECT * FROM audit_recent(NULL, NULL)')
  const found = recent.rows.map(({ invariant }) => invariant)
  const begun = await client.query<{ id: number }>(`SELECT begin_audit_pass('command') AS id`)
  for (const id = begun.rows[0]?.id; ; ) {
    const slice = await client.query<LedgerProblem>('SELECT * FROM prove_slice($1, $2)', [id, rows])
    found.push(...slice.rows.map(({ invariant }) => invariant))
    const pass = await client.query('SELECT FROM audit_pass WHERE id = $1 AND ended_at IS NOT NULL', [id])
    if (pass.rowCount === 1) return new Set(found)
  }
}

import { sqlFunction } from '../database/sql-function.ts'
import type { Pool } from 'pg'
import type { Log } from '../telemetry/log.ts'

/**
 * If the last proof is older than this, the log gets an alarm each minute (see docs/design/ledger.md#proof).
 */
const auditAlarmAfterMs = 5 * 60_000

/** The age of the last proof that reached the end of the books, by the database's clock. */
export interface ProofAge {
  /** The time up to which everything was proven; null before the first proof. */
  provenAt: Date | null
  ageMs: number | null
}

/** The columns of `ProofAge`, for a statement that reads `audit_point`. */
export const proofAgeColumns = `proven_at AS "provenAt",
  (extract(epoch FROM clock_timestamp() - proven_at) * 1000)::float8 AS "ageMs"`

/**
 * Rates the age of the last proof: `degraded` from the age that raises an alarm, `down` from the age that
 * halts payments out. Before the first proof, the time since the process began counts.
 */
export function healthOfProofAge(
  ageMs: number | null,
  { upMs, haltAfterMs }: { upMs: number; haltAfterMs: number },
) {
  const unprovenMs = ageMs ?? upMs
  if (haltAfterMs > 0 && unprovenMs > haltAfterMs) return 'down'
  return unprovenMs > auditAlarmAfterMs ? 'degraded' : 'operational'
}

/**
 * Raises an alarm where the books were not proven for five minutes, and halts payments out where they were
 * not proven for `haltAfterMs`; lifts that halt once they were proven again. This check proves nothing
 * itself, so a proof that hangs does not stop it. Every process runs it.
 * @param haltAfterMs 0: payments out are never halted for this reason
 * @param upMs how long the process has run: earlier time does not count
 */
export async function watchProofAge(
  { database, log }: { database: { readonly pool: Pool }; log: Log },
  { haltAfterMs, upMs }: { haltAfterMs: number; upMs: number },
): Promise<void> {
  const [watched] = await watch(database.pool, { haltAfterMs, upMs: Math.round(upMs) })
  if (!watched) return
  const seconds = Math.round(Number(watched.unprovenMs) / 1_000)
  if (Number(watched.unprovenMs) > auditAlarmAfterMs)
    log.error({ seconds }, 'alarm: the ledger was not checked for more than five minutes')
  if (watched.halted)
    log.error({ seconds }, 'alarm: payments out are halted until the ledger is checked again')
  if (watched.lifted) log.warn('payments out are possible again: the ledger was checked')
}

const watch = sqlFunction('watch_proof_age', {
  takes: { haltAfterMs: 'bigint', upMs: 'bigint' },
  gives: { unprovenMs: 'bigint', halted: 'boolean', lifted: 'boolean' },
})

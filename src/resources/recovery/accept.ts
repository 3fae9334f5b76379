import { sqlFunction } from '../../database/sql-function.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import type { OperatorRegistry } from '../../operators/registry.ts'
import type { Clock } from '../../shared/clock.ts'
import { DomainError } from '../../shared/errors.ts'
import { listOrphans, type Orphan } from './orphans.ts'
import { type LeftOut, proveOperators } from './operators-on-record.ts'
import { nothingReconciled, reconcileDay, type Reconciled } from './reconcile.ts'
import { readStatements } from './statements.ts'

const dayMs = 24 * 60 * 60 * 1_000
const pollMs = 250

export interface AcceptedRestore {
  epoch: number
  reconciled: Reconciled
  orphans: Orphan[]
  /** Number of keys that are refused until they are regenerated. */
  suspendedKeys: number
  /** The reason why money still may not leave; null where it may. */
  haltedStill: string | null
}

interface CompareOptions {
  pool: Pool
  operators: OperatorRegistry
  clock: Clock
  /** Operators that need neither answer nor prove who they are, because a person said so; null: none. */
  leftOut: LeftOut | null
  progress: (words: string) => void
}

interface Options extends CompareOptions {
  /** True if the platform's owner guarantees that no key was replaced or revoked after the backup. */
  keepKeys: boolean
  /**
   * The acceptance fails if the service settles none of the requests that it waits for in this time, in ms.
   */
  patienceMs: number
}

const accept = sqlFunction('accept_restore', {
  takes: { known: 'int', what: 'jsonb', why: 'text' },
  gives: 'boolean',
})
const restoreKeys = sqlFunction('restore_keys', { takes: {}, gives: 'void' })

/**
 * Accepts a restore of the database. Proves that the operators are the right ones, reads the statements of
 * all operators from one day before the backup on, waits until the service has settled the open requests that
 * these statements name, records the transfers that the database lacks as orphans, and only then lets money
 * leave again. It may be stopped and run again at any point.
 * @throws DomainError STATE_CONFLICT where there is nothing to accept, Error in one sentence where an
 *   operator with payments on record is not set up, does not answer or proves nothing, or where the service
 *   does not answer; then no money leaves yet
 */
export async function acceptRestore(options: Options): Promise<AcceptedRestore> {
  const { pool, keepKeys, patienceMs, progress, leftOut } = options
  const { epoch, since } = await findWaiting(pool)
  const reconciled = await compare(options, since)
  await untilSettled(pool, reconciled.openRequestIds, { patienceMs, progress })
  if (keepKeys) await restoreKeys(pool, {})
  const orphans = await listOrphans(pool)
  const counts = { ...summaryOf(reconciled), orphans: orphans.length, keptKeys: keepKeys, leftOut }
  const why = `the restore was accepted: ${JSON.stringify(counts)}`
  if (!(await accept(pool, { known: epoch, what: counts, why })))
    throw new DomainError(
      'STATE_CONFLICT',
      'The database was restored again in the meantime. Run this command again.',
    )
  return { epoch, reconciled, orphans, ...(await readRest(pool)) }
}

/**
 * Compares the statements of the operators since the last restore with the database again, and records the
 * orphans that an earlier comparison missed. It neither halts payments out nor lifts a halt.
 * @throws DomainError STATE_CONFLICT where the database was never restored, and Error as `acceptRestore`
 */
export async function findOrphansAgain(
  options: CompareOptions,
): Promise<{ reconciled: Reconciled; orphans: Orphan[] }> {
  const { rows } = await options.pool.query<{ since: Date | null }>(
    `SELECT coalesce(min(e.data_until), min(e.began_at)) AS since FROM database_epoch e
     WHERE e.accepted_at IS NULL OR e.accepted_at = (SELECT max(accepted_at) FROM database_epoch)`,
  )
  const since = rows[0]?.since
  if (!since) throw new DomainError('STATE_CONFLICT', 'This database was never restored.')
  const reconciled = await compare(options, since)
  return { reconciled, orphans: await listOrphans(options.pool) }
}

/** Reads the statements from one day before the backup on, and compares them with the database. */
async function compare(options: CompareOptions, since: Date): Promise<Reconciled> {
  const { pool, operators, clock, leftOut, progress } = options
  await proveOperators({ pool, operators, since, leftOut })
  const reconciled = nothingReconciled()
  const from = new Date(since.getTime() - dayMs)
  for await (const day of readStatements(operators, clock, from, leftOut?.providers)) {
    await reconcileDay(pool, day, reconciled)
    progress(`${day.provider}, ${day.day}: ${day.lines.length} lines`)
  }
  return reconciled
}

function summaryOf({ known, openRequestIds, notBegun, differing }: Reconciled) {
  return { known, settled: openRequestIds.length, notBegun, differing: differing.length }
}

/** Finds the restore that waits to be accepted. @throws DomainError STATE_CONFLICT */
async function findWaiting(pool: Pool): Promise<{ epoch: number; since: Date }> {
  const { rows } = await pool.query<{ epoch: number; since: Date; areKeysHandled: boolean }>(
    `SELECT i.epoch, coalesce(min(e.data_until), min(e.began_at)) AS since,
       bool_and(e.keys_handled_at IS NOT NULL) AS "areKeysHandled"
     FROM installation i JOIN database_epoch e ON e.accepted_at IS NULL
     WHERE i.restored_at IS NOT NULL GROUP BY i.epoch`,
  )
  const [waiting] = rows
  if (!waiting) throw new DomainError('STATE_CONFLICT', 'No restore of this database waits to be accepted.')
  if (!waiting.areKeysHandled)
    throw new DomainError(
      'STATE_CONFLICT',
      'Start the service first: it suspends the keys whose secrets may have been replaced after the backup.',
    )
  return waiting
}

/** Waits until the service has settled these requests. @throws Error where there is no progress */
async function untilSettled(
  pool: Pool,
  requestIds: readonly bigint[],
  { patienceMs, progress }: Pick<Options, 'patienceMs' | 'progress'>,
): Promise<void> {
  let [before, since] = [-1, performance.now()]
  for (;;) {
    const { rows } = await pool.query<{ open: number }>(
      `SELECT count(*)::int AS open FROM operator_request
       WHERE id = ANY ($1) AND state IN ('sending', 'unsent', 'accepted', 'doubt')`,
      [requestIds],
    )
    const open = rows[0]?.open ?? 0
    if (open === 0) return
    if (open !== before) {
      progress(`${open} payments that operators executed wait to be settled by the service`)
      ;[before, since] = [open, performance.now()]
    }
    if (performance.now() - since > patienceMs)
      throw new Error(
        `${open} payments that operators executed are not settled yet: is the service running? ` +
          'No money leaves until they are: run this again.',
      )
    await sleep(pollMs)
  }
}

async function readRest(pool: Pool): Promise<Pick<AcceptedRestore, 'suspendedKeys' | 'haltedStill'>> {
  const { rows } = await pool.query<Pick<AcceptedRestore, 'suspendedKeys' | 'haltedStill'>>(
    `SELECT (SELECT count(*)::int FROM api_key
         WHERE suspended_at IS NOT NULL AND revoked_at IS NULL) AS "suspendedKeys",
       (SELECT reason FROM payments_out_halt WHERE lifted_at IS NULL) AS "haltedStill"`,
  )
  return rows[0] ?? { suspendedKeys: 0, haltedStill: null }
}

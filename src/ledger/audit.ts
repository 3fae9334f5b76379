import type { Pool, PoolClient } from 'pg'
import { openPieces, type PieceSize, PieceTooLong } from '../database/pieces.ts'
import { type CallOptions, sqlFunction } from '../database/sql-function.ts'
import { transact } from '../database/transact.ts'
import { haltPaymentsOut } from './payments-out.ts'
import { type LedgerProblem, problemColumns } from './verify.ts'
import { locks } from '../database/locks.ts'

/** The number of rows in a slice, at most. */
export const auditRowsMax = 20_000

/** The time limit for proving the new rows of the books (see docs/design/ledger.md#proof). */
const auditTimeoutMs = 30_000

/** The time from one proof of all the books to the next (see docs/design/ledger.md#proof and `duePass`). */
const auditWholeEveryMs = 24 * 3_600_000
/** The time limit of each slice of such a proof. */
const auditSliceTimeoutMs = 10_000

/** The fewest rows in a slice: a cancelled proof of so few rows is tried again with the same number. */
const auditRowsMin = 500

/** The pool with which the books are proven, in short transactions. */
interface Books {
  readonly pool: Pool
}

/** Returns the size of the first proof of a process. */
export function newSliceSize(): PieceSize {
  return { rows: auditRowsMax }
}

/** The result of a proof of new rows. */
export interface RecentProof {
  problems: LedgerProblem[]
  /** True if the proof reached the end; otherwise more rows wait. */
  isEnd: boolean
}

/**
 * Proves the rows that were written since the last proof, and every balance; one process at a time. Where
 * more rows wait than `size` allows, it proves a part of them and no balance. A problem halts payments out
 * until a person resumes them.
 * @param options.beside proves all new rows, even while another process proves; in that case, records nothing
 * @returns null where another process proves, unless `beside`
 * @throws PieceTooLong where the proof took too long: then nothing was proven, and the next one is smaller
 */
export async function proveRecent(
  books: Books,
  size: PieceSize = newSliceSize(),
  { beside = false, timeoutMs = auditTimeoutMs }: { beside?: boolean; timeoutMs?: number } = {},
): Promise<RecentProof | null> {
  return sized(size, (rows) =>
    transact(books, async (tx) => {
      await beginProof(tx, timeoutMs)
      const free = await takeTurn(tx, locks.recentProof)
      if (!free && !beside) return null
      const [reach] = await auditReach(tx, { most: beside ? null : rows })
      const upto = { uptoEntry: reach?.ledgerEntryId, uptoEvent: reach?.eventId }
      const problems = distinct(await auditRecent(tx, upto, patient(timeoutMs)))
      await haltWhere(tx, problems)
      if (free && problems.length === 0) await recordProof(tx, upto, patient(timeoutMs))
      return { problems, isEnd: upto.uptoEntry == null }
    }),
  )
}

/** Returns where a proof of new rows ends; nulls: at the end of the books. */
const auditReach = sqlFunction('audit_reach', {
  takes: { most: 'bigint?' },
  gives: { ledgerEntryId: 'bigint?', eventId: 'bigint?' },
})
const auditRecent = sqlFunction('audit_recent', {
  takes: { uptoEntry: 'bigint?', uptoEvent: 'bigint?' },
  gives: problemColumns,
})
/** Records a proof. It sums the rows that the proof has read, so it may take longer than other statements. */
const recordProof = sqlFunction('record_proof', {
  takes: { uptoEntry: 'bigint?', uptoEvent: 'bigint?' },
  gives: 'void',
})
const beginPass = sqlFunction('begin_audit_pass', { takes: { ofKind: 'text' }, gives: 'int' })
const proveNext = sqlFunction('prove_slice', { takes: { pass: 'int', most: 'int' }, gives: problemColumns })

/** The progress of a pass over all the books. */
export interface PassProgress {
  /** The table, or the index, that the pass reads; `done` after the last. */
  stage: string
  idDone: bigint
  idLast: bigint
  slices: number
  /** The problems of the last slice. */
  problems: LedgerProblem[]
}

/**
 * Proves the next slice of all the books, in the background: one process at a time, and a new pass when
 * `duePass` says so. A pass continues where it stopped, also after a restart. A problem halts payments out
 * until a person resumes them.
 * @returns null where nothing is due, or another process proves
 * @throws PieceTooLong where the slice took too long: then it was not proven, and the next one is smaller
 */
export async function proveDueSlice(books: Books, size: PieceSize): Promise<PassProgress | null> {
  return sized(size, (rows) =>
    transact(books, async (tx) => {
      await beginProof(tx, auditSliceTimeoutMs)
      if (!(await takeTurn(tx, locks.proofPass))) return null
      const due = await tx.query<{ id: number | null }>(duePass, [auditWholeEveryMs])
      const id = due.rows[0]?.id
      return id == null ? null : proveSlice(tx, id, rows)
    }),
  )
}

/**
 * Proves all the books now, slice by slice, while the service runs or not. A problem halts payments out.
 * @param onSlice gets the progress after each slice
 */
export async function proveWhole(
  books: Books,
  onSlice: (progress: PassProgress) => void = () => {},
): Promise<LedgerProblem[]> {
  const size = newSliceSize()
  const found: LedgerProblem[] = []
  for (;;) {
    const prove = (beside: boolean) => untilProven(() => proveRecent(books, size, { beside }))
    const recent = (await prove(false)) ?? (await prove(true))
    found.push(...(recent?.problems ?? []))
    if (recent?.isEnd !== false || recent.problems.length > 0) break
  }
  const id = await beginPass(books.pool, { ofKind: 'command' })
  for (;;) {
    const progress = await untilProven(() =>
      sized(size, (rows) =>
        transact(books, async (tx) => {
          await beginProof(tx, auditSliceTimeoutMs)
          return proveSlice(tx, id, rows)
        }),
      ),
    )
    found.push(...progress.problems)
    onSlice(progress)
    if (progress.stage === 'done') return found
  }
}

/** Proves a slice; while it runs into its time limit, tries a smaller one, down to `auditRowsMin`. */
async function untilProven<Result>(work: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof PieceTooLong)) throw error
    }
  }
}

async function proveSlice(tx: PoolClient, id: number, most: number): Promise<PassProgress> {
  const timeoutMs = auditSliceTimeoutMs
  const problems = distinct(await proveNext(tx, { pass: id, most }, patient(timeoutMs)))
  await haltWhere(tx, problems)
  const { rows } = await tx.query<Omit<PassProgress, 'problems'>>(
    'SELECT stage, id_done AS "idDone", id_last AS "idLast", slices FROM audit_pass WHERE id = $1',
    [id],
  )
  return { stage: 'done', idDone: 0n, idLast: 0n, slices: 0, ...rows[0], problems }
}

/** Uses one snapshot for the proof and for the record of its progress. */
async function beginProof(tx: PoolClient, timeoutMs: number): Promise<void> {
  await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
  await tx.query(`SET LOCAL statement_timeout = '${timeoutMs}ms'`)
}

async function takeTurn(tx: PoolClient, lock: number): Promise<boolean> {
  const { rows } = await tx.query<{ free: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS free', [lock])
  return rows[0]?.free === true
}

/** Removes duplicate problems. */
function distinct(problems: readonly LedgerProblem[]): LedgerProblem[] {
  return [...new Map(problems.map((found) => [JSON.stringify(found), found])).values()]
}

/** Lets the client wait for a statement until the server's time limit, plus a margin. */
function patient(statementMs: number): CallOptions {
  return { timeoutMs: statementMs + 2_000 }
}

async function haltWhere(tx: PoolClient, [worst]: readonly LedgerProblem[]): Promise<void> {
  if (worst) await haltPaymentsOut(tx, `${worst.invariant}: merchant ${worst.merchantId}, ${worst.problem}`)
}

function sized<Result>(size: PieceSize, work: (rows: number) => Promise<Result>): Promise<Result> {
  return openPieces({ max: auditRowsMax, min: auditRowsMin }, size)(work)
}

/**
 * SQL that returns the running pass. If none runs, begins one, a day after the start of the last pass without
 * a problem and at least a minute after the end of the last rolling pass. Null if neither is the case.
 */
const duePass = `SELECT coalesce(due.id, CASE WHEN due.is_due THEN begin_audit_pass('rolling') END) AS id
  FROM (SELECT
    (SELECT id FROM audit_pass WHERE kind = 'rolling' AND ended_at IS NULL) AS id,
    EXISTS (SELECT FROM audit_point WHERE whole_proven_at < now() - $1 * interval '1 millisecond')
      AND NOT EXISTS (
        SELECT FROM audit_pass WHERE kind = 'rolling' AND ended_at > now() - interval '1 minute') AS is_due
  ) AS due`

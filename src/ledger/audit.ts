import pg, { type Pool, type PoolClient } from 'pg'
import { type CallOptions, sqlFunction } from '../database/sql-function.ts'
import { transact } from '../database/transact.ts'
import { haltPaymentsOut } from './payments-out.ts'
import { type LedgerProblem, problemColumns } from './verify.ts'
import { locks } from '../database/locks.ts'

/** Rows of a slice. */
export const auditRowsMax = 20_000

/** The proof of what is new in the books ends within this time (design: reliability, 1.4). */
const auditTimeoutMs = 30_000

/** All of the books are proven anew once a day (R30), by slices; each slice ends within its own time. */
const auditWholeEveryMs = 24 * 3_600_000
const auditSliceTimeoutMs = 10_000

/** Rows of a slice: fewer where one takes longer. Choice: a snapshot is held for a moment only. */
const auditSliceMs = 1_000
const auditRowsMin = 500

/** The proof of the books, in short transactions: what is new, and all of it slice by slice. */
interface Books {
  readonly pool: Pool
}

/**
 * How much a proof reads at once. A proof that runs into its time limit makes the next one smaller, so that
 * a slow machine proves in smaller steps instead of not at all.
 */
export interface SlicePace {
  rows: number
}

/** The pace that a process begins with. */
export function newPace(): SlicePace {
  return { rows: auditRowsMax }
}

/** What a proof of new rows found. */
export interface RecentProof {
  problems: LedgerProblem[]
  /** Whether it reached the end; else more rows wait to be proven. */
  isEnd: boolean
}

/**
 * Proves what was written since the last proof, and every balance; one process at a time. Where more rows
 * wait than `pace` allows, it proves a step of them. What is wrong stops payments out until a person lets
 * them go on.
 * @param options.beside proves also while another process has its turn; then nothing is noted
 * @returns null where another process has its turn
 * @throws DatabaseError where it took too long: then nothing was proven
 */
export async function proveRecent(
  books: Books,
  pace: SlicePace = newPace(),
  { beside = false, timeoutMs = auditTimeoutMs }: { beside?: boolean; timeoutMs?: number } = {},
): Promise<RecentProof | null> {
  return paced(pace, () =>
    transact(books, async (tx) => {
      await beginProof(tx, timeoutMs)
      const free = await takeTurn(tx, locks.recentProof)
      if (!free && !beside) return null
      const [reach] = await auditReach(tx, { most: beside ? null : pace.rows })
      const upto = { uptoEntry: reach?.ledgerEntryId, uptoEvent: reach?.eventId }
      const problems = distinct(await auditRecent(tx, upto, patient(timeoutMs)))
      await haltWhere(tx, problems)
      if (free && problems.length === 0) await recordProof(tx, upto, patient(timeoutMs))
      return { problems, isEnd: upto.uptoEntry == null }
    }),
  )
}

/** Where a proof of new rows ends; nulls: at the end. */
const auditReach = sqlFunction('audit_reach', {
  takes: { most: 'bigint?' },
  gives: { ledgerEntryId: 'bigint?', eventId: 'bigint?' },
})
const auditRecent = sqlFunction('audit_recent', {
  takes: { uptoEntry: 'bigint?', uptoEvent: 'bigint?' },
  gives: problemColumns,
})
/** Sums what the proof has read: over many rows no ordinary answer. */
const recordProof = sqlFunction('record_proof', {
  takes: { uptoEntry: 'bigint?', uptoEvent: 'bigint?' },
  gives: 'void',
})
const beginPass = sqlFunction('begin_audit_pass', { takes: { ofKind: 'text' }, gives: 'int' })
const proveNext = sqlFunction('prove_slice', { takes: { pass: 'int', most: 'int' }, gives: problemColumns })

/** How far a pass over all the books has come. */
export interface PassProgress {
  /** The table, or the index, that it reads; `done` after the last. */
  stage: string
  idDone: bigint
  idLast: bigint
  slices: number
  /** What the last slice found. */
  problems: LedgerProblem[]
}

/**
 * Proves the next slice of all the books, in the background: one process at a time, one pass a day. A pass
 * goes on where it stopped, also after a restart. What is wrong stops payments out until a person lets them
 * go on.
 * @returns null where nothing is due, or another process has its turn
 * @throws DatabaseError where it took too long: then the slice was not proven
 */
export async function proveDueSlice(books: Books, pace: SlicePace): Promise<PassProgress | null> {
  return paced(pace, () =>
    transact(books, async (tx) => {
      await beginProof(tx, auditSliceTimeoutMs)
      if (!(await takeTurn(tx, locks.proofPass))) return null
      const { rows } = await tx.query<{ id: number | null }>(duePass, [auditWholeEveryMs])
      const id = rows[0]?.id
      return id == null ? null : proveSlice(tx, id, pace)
    }),
  )
}

/**
 * Proves all the books now, slice by slice, beside the service or without it. What is wrong stops payments
 * out.
 * @param onSlice is told how far it is, after each slice
 */
export async function proveWhole(
  books: Books,
  onSlice: (progress: PassProgress) => void = () => {},
): Promise<LedgerProblem[]> {
  const pace = newPace()
  const found: LedgerProblem[] = []
  for (;;) {
    const recent = (await proveRecent(books, pace)) ?? (await proveRecent(books, pace, { beside: true }))
    found.push(...(recent?.problems ?? []))
    if (recent?.isEnd !== false || recent.problems.length > 0) break
  }
  const id = await beginPass(books.pool, { ofKind: 'command' })
  for (;;) {
    const progress = await untilProven(pace, () =>
      transact(books, async (tx) => {
        await beginProof(tx, auditSliceTimeoutMs)
        return proveSlice(tx, id, pace)
      }),
    )
    found.push(...progress.problems)
    onSlice(progress)
    if (progress.stage === 'done') return found
  }
}

/** Tries a slice again, smaller each time, while it runs into its time limit. */
async function untilProven<Result>(pace: SlicePace, work: () => Promise<Result>): Promise<Result> {
  for (;;) {
    const { rows } = pace
    try {
      return await paced(pace, work)
    } catch (error) {
      if (pace.rows === rows) throw error
    }
  }
}

async function proveSlice(tx: PoolClient, id: number, pace: SlicePace): Promise<PassProgress> {
  const timeoutMs = auditSliceTimeoutMs
  const problems = distinct(await proveNext(tx, { pass: id, most: pace.rows }, patient(timeoutMs)))
  await haltWhere(tx, problems)
  const { rows } = await tx.query<Omit<PassProgress, 'problems'>>(
    'SELECT stage, id_done AS "idDone", id_last AS "idLast", slices FROM audit_pass WHERE id = $1',
    [id],
  )
  return { stage: 'done', idDone: 0n, idLast: 0n, slices: 0, ...rows[0], problems }
}

/** One snapshot for the proof and for the note of how far it went. */
async function beginProof(tx: PoolClient, timeoutMs: number): Promise<void> {
  await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
  await tx.query(`SET LOCAL statement_timeout = '${timeoutMs}ms'`)
}

async function takeTurn(tx: PoolClient, lock: number): Promise<boolean> {
  const { rows } = await tx.query<{ free: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS free', [lock])
  return rows[0]?.free === true
}

/** Each problem once. */
function distinct(problems: readonly LedgerProblem[]): LedgerProblem[] {
  return [...new Map(problems.map((found) => [JSON.stringify(found), found])).values()]
}

/** No time but the statement's own. */
function patient(statementMs: number): CallOptions {
  return { timeoutMs: statementMs + 2_000 }
}

async function haltWhere(tx: PoolClient, [worst]: readonly LedgerProblem[]): Promise<void> {
  if (worst) await haltPaymentsOut(tx, `${worst.invariant}: merchant ${worst.merchantId}, ${worst.problem}`)
}

/** Halves the pace after a slow proof, quarters it after one that was cut off, and raises it again. */
async function paced<Result>(pace: SlicePace, work: () => Promise<Result>): Promise<Result> {
  const begun = performance.now()
  const set = (rows: number) => {
    pace.rows = Math.round(Math.min(Math.max(rows, auditRowsMin), auditRowsMax))
  }
  try {
    const result = await work()
    const ms = performance.now() - begun
    if (ms > auditSliceMs) set(pace.rows / 2)
    else if (ms < auditSliceMs / 4) set(pace.rows * 2)
    return result
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === queryCanceled) set(pace.rows / 4)
    throw error
  }
}

const queryCanceled = '57014'
/**
 * The pass that is under way. Else a new one: a day after the last one began, or, where that one found
 * something, a minute after it ended.
 */
const duePass = `SELECT coalesce(due.id, CASE WHEN due.is_due THEN begin_audit_pass('rolling') END) AS id
  FROM (SELECT
    (SELECT id FROM audit_pass WHERE kind = 'rolling' AND ended_at IS NULL) AS id,
    EXISTS (SELECT FROM audit_point WHERE whole_proven_at < now() - $1 * interval '1 millisecond')
      AND NOT EXISTS (
        SELECT FROM audit_pass WHERE kind = 'rolling' AND ended_at > now() - interval '1 minute') AS is_due
  ) AS due`

import type { Pool, PoolClient } from 'pg'
import { type Clock, movedClock } from '../shared/clock.ts'
import { transact } from './transact.ts'
import { sqlFunction } from './sql-function.ts'

const moveSandboxClock = sqlFunction('move_sandbox_clock', {
  takes: { ms: 'bigint', named: 'text?', kept: 'int' },
  gives: 'bigint',
})

/**
 * The number of named clock moves that are remembered, so that a repeated request does not move the clock
 * again. Choice: more moves than clients make in a minute.
 */
const clockMovesKept = 1_000

/** The clock of a sandbox: the machine's time plus an offset that all processes read from the database. */
export interface SandboxClock extends Clock {
  /**
   * Moves the time forward for every process. A repeated call with the same `move` moves nothing.
   * @param record called in the same transaction with the clock's offset before and after the move, in ms
   * @returns the new time
   */
  advance(ms: number, move?: string, record?: RecordMove): Promise<Date>
  /** Reads the offset, which another process may have changed. */
  refresh(): Promise<void>
}

export type RecordMove = (tx: PoolClient, before: number, after: number) => Promise<void>

export async function openSandboxClock(pool: Pool): Promise<SandboxClock> {
  const clock = movedClock()
  // An offset that was read before a move may arrive after the move, so the clock keeps the larger one.
  const take = (row: { offset: bigint } | undefined) => clock.moveTo(Number(row?.offset ?? 0n))
  async function refresh(): Promise<void> {
    const { rows } = await pool.query<{ offset: bigint }>('SELECT offset_ms AS "offset" FROM sandbox_clock')
    take(rows[0])
  }
  await refresh()
  return {
    ...clock,
    refresh,
    async advance(ms, move, record) {
      take(await transact({ pool }, (tx) => moveBy(tx, { ms, move, record })))
      return clock.now()
    },
  }
}

interface Move {
  ms: number
  move: string | undefined
  record: RecordMove | undefined
}

async function moveBy(tx: PoolClient, { ms, move, record }: Move): Promise<{ offset: bigint }> {
  const known = await tx.query<{ offset: bigint }>(
    'SELECT offset_ms AS "offset" FROM sandbox_clock FOR UPDATE',
  )
  const offset = await moveSandboxClock(tx, { ms, named: move ?? null, kept: clockMovesKept })
  await record?.(tx, Number(known.rows[0]?.offset ?? 0n), Number(offset))
  return { offset }
}

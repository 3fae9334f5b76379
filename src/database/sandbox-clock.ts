import type { Pool, PoolClient } from 'pg'
import { type Clock, movedClock } from '../shared/clock.ts'
import { transact } from './transact.ts'
import { sqlFunction } from './sql-function.ts'

const moveSandboxClock = sqlFunction('move_sandbox_clock', {
  takes: { ms: 'bigint', named: 'text?', kept: 'int' },
  gives: 'bigint',
})

/**
 * The number of clock moves that are remembered, in case their request is repeated. Choice: more than a
 * minute's.
 */
const clockMovesKept = 1_000

/** The sandbox's clock: the machine's time plus an offset that all processes share through the database. */
export interface SandboxClock extends Clock {
  /**
   * Moves the time forward for every process, once for each named `move`.
   * @param record gets the clock's offset before and after the move, in ms, in the same transaction
   * @returns the new time
   */
  advance(ms: number, move?: string, record?: RecordMove): Promise<Date>
  /** Reads the offset, which another process may have changed. */
  refresh(): Promise<void>
}

export type RecordMove = (tx: PoolClient, before: number, after: number) => Promise<void>

export async function openSandboxClock(pool: Pool): Promise<SandboxClock> {
  const clock = movedClock()
  // An answer from before a move may arrive after it, so the clock keeps the larger offset.
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

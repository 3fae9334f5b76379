import type { Pool } from 'pg'
import { sqlFunction } from '../database/sql-function.ts'

const sweeps = {
  exchanges: sqlFunction('sweep_exchanges', {
    takes: { keptDays: 'int', afterId: 'bigint', take: 'int' },
    gives: 'bigint?',
  }),
  callbacks: sqlFunction('sweep_callbacks', {
    takes: { keptDays: 'int', afterId: 'bigint', take: 'int' },
    gives: 'bigint?',
  }),
} as const

/** The records of what the service and its operators sent to each other. */
export type WireLog = keyof typeof sweeps

/** The most rows that one step looks at. */
export const wireLogSweepMax = 1_000

/**
 * Begins a clean-up of one of these logs. It deletes rows that are older than the owner's setting, oldest
 * first, and leaves those of a request that the service may still ask about. After the last old row it begins
 * again with the first one, because requests end meanwhile.
 * @returns a function that does one step; it returns whether more old rows may follow. 0 days: rows are kept
 * for ever, and the function does nothing
 */
export function openWireLogSweep(log: WireLog) {
  let afterId = 0n
  return async (pool: Pool, keptDays: number, take = wireLogSweepMax): Promise<boolean> => {
    if (keptDays === 0) return false
    const last = await sweeps[log](pool, { keptDays, afterId, take })
    afterId = last ?? 0n
    return last !== null
  }
}

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

/** The logs of the HTTP exchanges with operators, and of their callbacks. */
export type WireLog = keyof typeof sweeps

/** The most rows that one step looks at. */
export const wireLogSweepMax = 1_000

/**
 * Begins a clean-up of one of these logs. It deletes rows that are older than the owner's setting, oldest
 * first, except rows of a request that the service may still ask about. After the last old row it begins
 * again with the first one, because those requests may have ended meanwhile.
 * @returns a function that does one step and returns whether more old rows may follow; with a setting of 0
 * days it deletes nothing
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

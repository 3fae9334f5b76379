import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { seesAll } from './list.ts'

/**
 * Writes an alarm to the log while differences wait for a decision: their number, and when the oldest was
 * found.
 */
export async function alarmOpenDifferences(services: Pick<Services, 'database' | 'log'>): Promise<void> {
  const { rows } = await asPlatform(services, seesAll).pool.query<{ open: number; oldestAt: Date | null }>({
    name: 'count_open_differences',
    text: `SELECT count(*)::int AS open, min(created_at) AS "oldestAt" FROM settlement_exception
      WHERE state = 'open'`,
  })
  const [found] = rows
  if (found && found.open > 0)
    services.log.error(found, 'alarm: amounts that operators did not confirm as asked wait for a decision')
}

import { databaseBounds } from '../../src/database/client.ts'

/** How much longer than in production a test lets the database work before the service gives up. */
const times = 20
const usual = { ...databaseBounds }

/**
 * Lengthens the service's bounds that a busy machine reaches: it would answer 503 where the code is right. A
 * test of a bound sets its own (`useBounds`).
 */
export function lengthenBounds(): void {
  for (const name of Object.keys(usual) as (keyof typeof usual)[]) databaseBounds[name] = usual[name] * times
}

import { poolSizes } from '../../src/database/pool-sizes.ts'
import { waits } from '../../src/shared/waits.ts'

// The setup of each test file loads this module. `vi.mock` does not reach what the setup has loaded, so it
// imports nothing else of the service.

/** How much longer than in production a test lets the service wait. */
const times = 20

/** The waits of production, for the tests of one: `useBounds(waits, { lockMs: usualWaits.lockMs })`. */
export const usualWaits: Readonly<typeof waits> = { ...waits }

/**
 * Lengthens the waits of the service, because a busy machine reaches them where the code is right: the
 * service would answer 503, or less than it knows.
 */
export function lengthenWaits(): void {
  for (const name of Object.keys(usualWaits) as (keyof typeof waits)[]) waits[name] = usualWaits[name] * times
}

/**
 * Gives each process of the service few database sessions: each new one reads the catalogue and plans its
 * statements again, which was a third of the database's work for a test file.
 */
export function narrowPools(): void {
  Object.assign(poolSizes, { allMerchants: 5, oneMerchant: 3, leases: 6 })
}

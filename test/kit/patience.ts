import { databaseBounds } from '../../src/database/client.ts'
import { refusalBounds } from '../../src/http/connections.ts'
import { healthBounds } from '../../src/http/health.ts'
import { credentialBounds } from '../../src/identity/credentials.ts'
import { windowBounds } from '../../src/limits/window.ts'
import { previewBounds } from '../../src/resources/batches/preview.ts'

/** How much longer than in production a test lets the service wait before it gives up. */
const times = 20

/**
 * The bounds as production has them, for the tests of a bound: `useBounds(databaseBounds,
 * usualBounds.database)`.
 */
export const usualBounds = {
  credential: { ...credentialBounds },
  database: { ...databaseBounds },
  health: { ...healthBounds },
  preview: { ...previewBounds },
  refusal: { ...refusalBounds },
  window: { ...windowBounds },
}

/**
 * Lengthens the bounds of the service that a busy machine reaches where the code is right: the service would
 * answer 503, or less than it knows.
 */
export function lengthenBounds(): void {
  lengthen(credentialBounds, usualBounds.credential)
  lengthen(databaseBounds, usualBounds.database)
  lengthen(healthBounds, usualBounds.health)
  lengthen(previewBounds, usualBounds.preview)
  lengthen(refusalBounds, usualBounds.refusal)
  lengthen(windowBounds, usualBounds.window)
}

function lengthen<Bounds extends Record<string, number>>(bounds: Bounds, usual: Readonly<Bounds>): void {
  Object.assign(
    bounds,
    Object.fromEntries(Object.entries(usual).map(([name, value]) => [name, value * times])),
  )
}

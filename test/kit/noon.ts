import { onTestFinished, vi } from 'vitest'

const dayMs = 86_400_000

/**
 * Puts the date of this process to a noon, from which it goes on: a test whose subject is a day must not see
 * it end.
 * @param atEnd `afterAll` keeps it until the end of the file
 */
export function startAtNoon(atEnd: (end: () => void) => void = onTestFinished): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 5, 15, 12), shouldAdvanceTime: true })
  atEnd(() => void vi.useRealTimers())
}

/** The time until noon of tomorrow in UTC: a service that moves its clock by it sees no day end soon. */
export function msUntilNoon(): number {
  return 1.5 * dayMs - (Date.now() % dayMs)
}

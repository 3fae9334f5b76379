import { afterAll } from 'vitest'

/**
 * Changes bounds until the end of a test file. Files share processes, so the next one must find them as they
 * were.
 * @param atEnd `onTestFinished` changes them until the end of one test
 */
export function useBounds<Bounds extends object>(
  bounds: Bounds,
  changes: Partial<Bounds>,
  atEnd: (restore: () => void) => void = afterAll,
): void {
  const before = { ...bounds }
  Object.assign(bounds, changes)
  atEnd(() => void Object.assign(bounds, before))
}

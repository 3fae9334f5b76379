import { afterAll } from 'vitest'

/** The functions that restore the bounds that are changed now. */
const changed = new Set<() => void>()

/**
 * Changes bounds until the end of a test file. Files share processes, so the next one must find them as they
 * were. Call it at the top of the file or in a test: a call in a hook registers no `afterAll`.
 * @param atEnd `onTestFinished` changes them until the end of one test
 */
export function useBounds<Bounds extends object>(
  bounds: Bounds,
  changes: Partial<Bounds>,
  atEnd: (restore: () => void) => void = afterAll,
): void {
  const before = { ...bounds }
  const restore = () => {
    if (changed.delete(restore)) Object.assign(bounds, before)
  }
  changed.add(restore)
  Object.assign(bounds, changes)
  atEnd(restore)
}

/** Restores all bounds: a file whose tests are all skipped runs no `afterAll`. */
export function restoreBounds(): void {
  for (const restore of [...changed].toReversed()) restore()
}

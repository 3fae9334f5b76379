/**
 * Asserts a condition that must be true. A violation is a bug in this program, never a caller's mistake.
 * @throws InvariantError with `why`
 */
export function invariant(condition: unknown, why: string): asserts condition {
  if (!condition) throw new InvariantError(why)
}

/** The error of a violated invariant. The work stops, because it would otherwise continue wrongly. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError'
}

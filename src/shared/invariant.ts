/**
 * States what must hold; a violation is a bug in this program, never a caller's mistake.
 * @throws InvariantError with `why`
 */
export function invariant(condition: unknown, why: string): asserts condition {
  if (!condition) throw new InvariantError(why)
}

/** Something that must hold does not: the work stops rather than continue wrongly. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError'
}

/** The system does not recover from a kill: a fault, or a machine that is too busy. */
export class StuckError extends Error {
  override readonly name = 'StuckError'
}

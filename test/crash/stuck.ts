/** The system does not recover from a kill: a violation like any other. */
export class StuckError extends Error {
  override readonly name = 'StuckError'
}

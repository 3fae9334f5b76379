/** What was broken does not come back: a violation like any other. */
export class StuckError extends Error {
  override readonly name = 'StuckError'
}

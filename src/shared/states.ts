/**
 * The moves of a lifecycle: for each status its next statuses, with reasons. A status without next statuses
 * is final.
 */
export type Moves<S extends string> = { readonly [From in S]: { readonly [To in S]?: string } }

/** The lifecycle of one kind of thing as data: which status may follow which, and why. */
export interface States<S extends string> {
  readonly name: string
  readonly initial: S
  readonly statuses: readonly S[]
  readonly moves: Moves<S>
  canMove(from: S, to: S): boolean
}

/**
 * Makes a lifecycle from its table. The database holds the same rows (`lifecycle_move`); a test compares
 * them.
 */
export function defineStates<S extends string>(
  name: string,
  initial: NoInfer<S>,
  moves: Moves<S>,
): States<S> {
  return {
    name,
    initial,
    statuses: Object.keys(moves) as S[],
    moves,
    canMove: (from, to) => Object.hasOwn(moves[from], to),
  }
}

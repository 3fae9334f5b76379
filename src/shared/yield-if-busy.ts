/** Bounds of work that takes long. */
export const turnBounds = {
  /** The time that work may take without a pause before other work gets its turn. */
  sliceMs: 10,
}

let sliceEnds = 0
let nextTurn: Promise<void> | null = null

/**
 * Yields to other work if the slice of this turn of the event loop is used up. Work that waits only for
 * promises delays requests, timers and sockets until it is done, so that long work must call this function
 * after each piece. All such work shares one slice per turn, and each does at least one piece.
 * @returns a promise to wait for; null if there is time left
 */
export function yieldIfBusy(): Promise<void> | null {
  if (performance.now() < sliceEnds) return null
  nextTurn ??= new Promise((resolve) => {
    setImmediate(() => {
      nextTurn = null
      sliceEnds = performance.now() + turnBounds.sliceMs
      resolve()
    })
  })
  return nextTurn
}

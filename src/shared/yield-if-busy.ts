/** Work that never waits may take so long before whatever else there is to do has its turn. */
const sliceMs = 10

let sliceEnds = 0
let nextTurn: Promise<void> | null = null

/**
 * Gives way where the time of this turn of the event loop is used up. What waits for nothing but promises
 * holds up requests, timers and sockets until it is done: so long work asks after each piece. All of it
 * shares one slice per turn, each doing at least a piece.
 * @returns what to wait for; null where there is time left
 */
export function yieldIfBusy(): Promise<void> | null {
  if (performance.now() < sliceEnds) return null
  nextTurn ??= new Promise((resolve) => {
    setImmediate(() => {
      nextTurn = null
      sliceEnds = performance.now() + sliceMs
      resolve()
    })
  })
  return nextTurn
}

// The page's session ends with a request that the service takes for that of a stranger.

const listeners = new Set<() => void>()

/** Calls a listener when the session has ended. @returns a function that ends the calls */
export function onSessionEnd(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Says that the service took a request for that of a stranger. The client of GraphQL calls it. */
export function endSession(): void {
  for (const listener of listeners) listener()
}

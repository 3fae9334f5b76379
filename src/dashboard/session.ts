// The session that the page shows. Another window of the browser may sign in to another account meanwhile,
// and the cookie is then that of the other account: each request names the member of the page.

let shownMember: number | null = null

/** Returns the headers of each request but the one that asks who is signed in. */
export function sessionHeaders(): Record<string, string> {
  return shownMember === null ? {} : { 'X-Session-Member': String(shownMember) }
}

/**
 * Binds the page to a member.
 * @returns false where the page shows another member already: it must load anew, with nothing of that one
 */
export function bindTo(memberId: number): boolean {
  shownMember ??= memberId
  return shownMember === memberId
}

const listeners = new Set<() => void>()

/** Calls a listener when the session may have ended. @returns a function that ends the calls */
export function onDoubt(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Says that the session may have ended: a request was refused, or the page was out of sight. */
export function doubtSession(): void {
  for (const listener of listeners) listener()
}

addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') doubtSession()
})

import type { CombinedError } from '@urql/preact'
import { codeOf, refusalOf } from './refusals.ts'

// The money that was sent and whose outcome is unknown. It stays where the person leaves the page, loads it
// anew, or closes it: sent another time under another key, it could be paid a second time.

/** Money and the moment when it was kept. */
interface Kept {
  sent: unknown
  atMs: number
}

const keptHere = new Map<string, Kept>()
/** The time after which kept money is forgotten: the service forgets its key after 30 days. */
const keptMsMax = 29 * 86_400_000

/** Returns what was sent under a name, and whose outcome is unknown; undefined where there is nothing. */
export function sentOf(name: string): unknown {
  const kept = storedOf(name) ?? keptHere.get(name)
  return kept && Date.now() - kept.atMs < keptMsMax ? kept.sent : undefined
}

function storedOf(name: string): Kept | undefined {
  try {
    const stored = localStorage.getItem(name)
    return stored === null ? undefined : (JSON.parse(stored) as Kept)
  } catch {
    // A browser that forbids storage has it until the page is closed.
    return undefined
  }
}

/** Keeps money before it is sent. */
export function keepSent(name: string, sent: object): void {
  const kept: Kept = { sent, atMs: Date.now() }
  keptHere.set(name, kept)
  try {
    localStorage.setItem(name, JSON.stringify(kept))
  } catch {
    // As above.
  }
}

/** Forgets money whose outcome is known. */
export function forgetSent(name: string): void {
  keptHere.delete(name)
  try {
    localStorage.removeItem(name)
  } catch {
    // As above.
  }
}

/** Makes a key of random bytes. `randomUUID` is missing in pages without TLS. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}

/** The refusals that come before the service looks whether it carried the request out already. */
const codesBefore: ReadonlySet<string> = new Set(['FORBIDDEN', 'RATE_LIMITED', 'UNAUTHENTICATED'])
/** The refusals after which the same request is sent again, under its key. */
const codesBusy: ReadonlySet<string> = new Set(['OVERLOADED', 'SERVICE_DOWN'])

/** Whether an answer says what became of the money. @param isRepeated whether it was sent before */
export function isCertain(
  answer: object | null | undefined,
  error: CombinedError | undefined,
  isRepeated: boolean,
): boolean {
  const code = refusalOf(answer)?.code ?? codeOf(error)
  if (codesBusy.has(code)) return false
  return codesBefore.has(code) ? !isRepeated : answer != null
}

/** Whether an error says in words of its own why nothing is known of the money. */
export function isSaid(error: CombinedError | undefined): boolean {
  return codesBefore.has(codeOf(error)) || codesBusy.has(codeOf(error))
}

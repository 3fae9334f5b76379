/** A refund that was sent. */
export interface SentRefund {
  /** The key under which the service carries it out once. */
  key: string
  /** The amount in whole francs. */
  amount: number
  reason: string
}

// The refunds that were sent and whose outcome is unknown. They stay where the person leaves the page, or
// loads it anew: another refund could pay a second time.

const kept = new Map<string, SentRefund>()
const nameOf = (paymentId: string) => `refund-${paymentId}`

/** Returns the refund of a payment whose outcome is unknown; undefined where there is none. */
export function sentRefundOf(paymentId: string): SentRefund | undefined {
  try {
    const stored = sessionStorage.getItem(nameOf(paymentId))
    if (stored !== null) return JSON.parse(stored) as SentRefund
  } catch {
    // A browser that forbids storage has it until the page is closed.
  }
  return kept.get(paymentId)
}

/** Keeps a refund before it is sent. */
export function keepRefund(paymentId: string, sent: SentRefund): void {
  kept.set(paymentId, sent)
  try {
    sessionStorage.setItem(nameOf(paymentId), JSON.stringify(sent))
  } catch {
    // As above.
  }
}

/** Forgets a refund whose outcome is known. */
export function forgetRefund(paymentId: string): void {
  kept.delete(paymentId)
  try {
    sessionStorage.removeItem(nameOf(paymentId))
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

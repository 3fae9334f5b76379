/** How many numbers of each kind the present file has taken. */
const taken = new Map<string, number>()

/** Begins anew: Vitest calls it before each file, because files share processes. */
export function restartCustomers(): void {
  taken.clear()
}

/**
 * The next number of a kind, in so many digits. Numbers of two digits come again after 100: a file may have
 * more customers of one scenario and parameter than there are numbers.
 * @throws Error where a file has taken all numbers of more digits
 */
export function nextCustomer(kind: string, digits: number): string {
  const nth = (taken.get(kind) ?? 0) + 1
  const all = 10 ** digits
  if (digits > 2 && nth >= all) throw new Error(`this file has taken all numbers of the kind ${kind}`)
  taken.set(kind, nth)
  return String(nth % all).padStart(digits, '0')
}

import { quantile } from './load.ts'
import type { Measurement } from './rounds.ts'

/** Payments to settle: ids that follow one another, as text. */
export interface Settling {
  first: string
  count: number
  seconds: number
  /** How many at once. */
  width: number
}

/**
 * Settles one payment after the other, some at once, until the time or the payments are over.
 * @throws Error where one was not open any more
 */
export async function settleAll(
  { first, count, seconds, width }: Settling,
  settle: (id: bigint) => Promise<boolean>,
): Promise<Measurement> {
  const durations: number[] = []
  const begun = performance.now()
  let next = 0
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count && performance.now() - begun < seconds * 1_000) {
        const id = BigInt(first) + BigInt(next)
        next += 1
        const sent = performance.now()
        if (!(await settle(id))) throw new Error(`Payment ${id} was settled before.`)
        durations.push(performance.now() - sent)
      }
    }),
  )
  const elapsedS = (performance.now() - begun) / 1_000
  return {
    value: durations.length / elapsedS,
    operations: durations.length,
    p99Ms: quantile(durations, 0.99),
  }
}

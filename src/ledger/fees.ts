import type { Xof } from '../shared/money.ts'

/**
 * What paying money out costs the merchant beside the money itself: nothing. Whoever changes that sets it
 * aside with the money and posts it to `fees`.
 * @returns whole XOF
 */
export function disbursementFees(_amount: Xof): Xof {
  return 0n
}

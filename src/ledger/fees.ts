import type { Xof } from '../shared/money.ts'

/**
 * Returns the fee of a disbursement: zero. A fee would have to be reserved with the amount and posted to
 * `fees`.
 * @returns whole XOF
 */
export function disbursementFees(_amount: Xof): Xof {
  return 0n
}

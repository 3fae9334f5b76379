import type { Provider } from '../../shared/providers.ts'

/** A customer of the demonstration. The number decides the behaviour (see docs/design/rules.md#sandbox). */
export interface Customer {
  /** The number as a merchant would type it. */
  phone: string
  operator: Provider
  /** Whole XOF. */
  amount: number
  /** The behaviour of this customer, in words. */
  does: string
  /** The changes that must come, in this order: a status, or a failure with its reason. */
  changes: readonly string[]
}

const paid = ['pending', 'success']
const refused = (reason: string) => ['pending', `failed ${reason}`]

/** The ten customers, over four operators. The last one pays after the payment has expired. */
export const customers: readonly Customer[] = [
  customer('70000001', 'OperatorA', 5_000, 'pays at once', paid),
  customer('70000302', 'OperatorC', 12_500, 'pays after 3 seconds', paid),
  customer('76123456', 'OperatorB', 7_500, 'pays on the hosted page', paid),
  customer('70010001', 'OperatorD', 2_000, 'declines', refused('PAYER_DECLINED')),
  customer('70020001', 'OperatorB', 90_000, 'has too little money', refused('PAYER_INSUFFICIENT_FUNDS')),
  customer('70030001', 'OperatorD', 1_500, 'has no wallet', refused('PAYER_NOT_FOUND')),
  customer('70040001', 'OperatorA', 800_000, 'is over a limit', refused('PAYER_LIMIT_REACHED')),
  customer('70060001', 'OperatorC', 3_000, 'types wrong PINs', refused('PAYER_AUTH_FAILED')),
  customer('70070001', 'OperatorD', 4_000, 'is in another session', refused('PAYER_BUSY')),
  customer('70120001', 'OperatorA', 25_000, 'pays 25 hours later', ['pending', 'expired', 'success late']),
]

function customer(
  phone: string,
  operator: Provider,
  amount: number,
  does: string,
  changes: readonly string[],
): Customer {
  return { phone, operator, amount, does, changes }
}

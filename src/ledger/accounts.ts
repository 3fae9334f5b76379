import type { Provider } from '../shared/providers.ts'

/**
 * The chart of accounts. Each merchant has its own set, so that no account is touched by every merchant and
 * each ledger proves itself. Only `available`, `reserved` and `suspense` (as `receivable`) keep a running
 * balance; the others are sums of their movements.
 */
export const accounts = {
  available: 'Owed to the merchant, free to use.',
  reserved: 'Owed to the merchant, set aside for payments under way.',
  clearing_operator_a: 'Held at OperatorA for the merchant.',
  clearing_operator_b: 'Held at OperatorB for the merchant.',
  clearing_operator_c: 'Held at OperatorC for the merchant.',
  clearing_operator_d: 'Held at OperatorD for the merchant.',
  fees: 'Fees taken.',
  suspense: 'Owed by the merchant: taken back by an operator when it was spent; the next money pays it.',
  funding: 'Money that the owner of a sandbox put in.',
} as const
export type Account = keyof typeof accounts

/** The account that holds a merchant's money at an operator. */
export const clearingAccount = {
  OperatorA: 'clearing_operator_a',
  OperatorB: 'clearing_operator_b',
  OperatorC: 'clearing_operator_c',
  OperatorD: 'clearing_operator_d',
} as const satisfies Record<Provider, Account>

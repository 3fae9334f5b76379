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
  unallocated: 'Received from an operator beyond what was asked: a person decides whose it is.',
} as const
export type Account = keyof typeof accounts

/** Why money moves. */
export const ledgerSteps = {
  fund: 'The owner of a sandbox put money in.',
  credit: 'A collection was paid.',
  reserve: 'Money was set aside for a payment.',
  post: 'What was set aside was paid out.',
  release: 'What was set aside and not needed came back.',
  void: 'The payment did not take place: all of it came back.',
  reverse: 'An operator took a payment back, in either direction.',
  shortfall: 'The part of it that was spent already: the merchant owes it.',
  recover: 'The merchant paid what it owed.',
  excess: 'An operator says that more was paid than asked: the rest waits for a person.',
  excess_credit: 'A person credited that rest to the merchant.',
  excess_return: 'That rest went back to the operator.',
} as const
export type LedgerStep = keyof typeof ledgerSteps

/** The account that holds a merchant's money at an operator. */
export const clearingAccount = {
  OperatorA: 'clearing_operator_a',
  OperatorB: 'clearing_operator_b',
  OperatorC: 'clearing_operator_c',
  OperatorD: 'clearing_operator_d',
} as const satisfies Record<Provider, Account>

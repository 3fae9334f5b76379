import type { Provider } from '../shared/providers.ts'

/**
 * The chart of accounts. Each merchant has its own set, so that no account is shared by all merchants and
 * each ledger can be proven alone. Only `available`, `reserved` and `suspense` (as `receivable`) keep a
 * running balance; the others are sums of their entries.
 */
export const accounts = {
  available: 'Money of the merchant that can be used now.',
  reserved: 'Money of the merchant that is reserved for payments that are not final yet.',
  clearing_operator_a: 'Held at OperatorA for the merchant.',
  clearing_operator_b: 'Held at OperatorB for the merchant.',
  clearing_operator_c: 'Held at OperatorC for the merchant.',
  clearing_operator_d: 'Held at OperatorD for the merchant.',
  fees: 'Fees that the platform took.',
  suspense: 'Money that the merchant owes because an operator took a payment back after it was spent.',
  funding: 'Money that was added in a sandbox.',
  unallocated:
    'Money that customers paid beyond the requested amount, or that operators did not confirm of a ' +
    'payment out; the platform decides about it.',
} as const
export type Account = keyof typeof accounts

/** The kinds of ledger entries: why money moves. */
export const ledgerSteps = {
  fund: 'Money was added in a sandbox.',
  credit: 'A collection was paid.',
  reserve: 'Money was reserved for a payment.',
  post: 'Reserved money was paid out.',
  release: 'Reserved money was not needed and became available again. No longer written.',
  void: 'A payment did not take place, and all its reserved money became available again.',
  reverse: 'A payment was reversed by the operator or by a refund.',
  shortfall:
    'A payment was reversed, but the merchant had already spent part of its money. The merchant owes ' +
    'that part.',
  recover: 'New money paid what the merchant owed.',
  excess: 'A customer paid more than was requested; the rest waits for a decision of the platform.',
  excess_credit: 'The platform credited the excess to the merchant.',
  excess_return: 'The platform returned the excess to the customer.',
  withhold:
    'An operator states that it paid out less than was requested; the rest waits for a decision of the ' +
    'platform.',
  withheld_credit: 'The platform credited the withheld rest to the merchant.',
  withheld_post: 'The platform found that the withheld rest was paid out.',
} as const
export type LedgerStep = keyof typeof ledgerSteps

/** The account that holds a merchant's money at an operator. */
export const clearingAccount = {
  OperatorA: 'clearing_operator_a',
  OperatorB: 'clearing_operator_b',
  OperatorC: 'clearing_operator_c',
  OperatorD: 'clearing_operator_d',
} as const satisfies Record<Provider, Account>

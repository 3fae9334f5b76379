/** The four mobile-money operators, by their neutral names (see docs/design/rules.md#general). */
export const providers = ['OperatorA', 'OperatorB', 'OperatorC', 'OperatorD'] as const
export type Provider = (typeof providers)[number]

/** The payment methods of a beneficiary. A bank account can be saved, but not paid yet. */
export const payoutMethods = [...providers, 'BankTransfer'] as const
export type PayoutMethod = (typeof payoutMethods)[number]

/** The four mobile-money operators, by their neutral names (see docs/design/rules.md#general). */
export const providers = ['OperatorA', 'OperatorB', 'OperatorC', 'OperatorD'] as const
export type Provider = (typeof providers)[number]

/** The ways to pay somebody out: the operators, and banks, which are saved and not paid yet. */
export const payoutMethods = [...providers, 'BankTransfer'] as const
export type PayoutMethod = (typeof payoutMethods)[number]

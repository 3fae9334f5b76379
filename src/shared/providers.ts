/** The four mobile-money operators, by the neutral names of the specification (Resources). */
export const providers = ['OperatorA', 'OperatorB', 'OperatorC', 'OperatorD'] as const
export type Provider = (typeof providers)[number]

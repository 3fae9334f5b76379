import type { SimulatedOperationKind, Reason } from './model.ts'

export type GsmaCategory =
  | 'businessRule'
  | 'validation'
  | 'authorisation'
  | 'identification'
  | 'internal'
  | 'serviceUnavailable'

export interface GsmaFault {
  readonly category: GsmaCategory
  readonly code: string
  readonly description: string
  /** The detail where the standard has no code of its own: `errorParameters: [{ key: "reason", value }]`. */
  readonly detail?: string
}

interface ReasonWords {
  readonly gsma: GsmaFault
  /** `last_payment_error.code` of a checkout session; null where the session's status is enough. */
  readonly checkout: string | null
  /** `payout_error.error_code` of a payout. */
  readonly payout: string
  readonly message: string
}

/** The words of each refusal in each protocol. */
export const reasons: Readonly<Record<Reason, ReasonWords>> = {
  declined: {
    gsma: { category: 'authorisation', code: 'requestDeclined', description: 'The customer declined.' },
    checkout: null,
    payout: 'payment-failure',
    message: 'Declined by the customer.',
  },
  insufficientFunds: {
    gsma: { category: 'businessRule', code: 'insufficientFunds', description: 'The balance is too low.' },
    checkout: 'insufficient-funds',
    payout: 'insufficient-funds',
    message: 'The balance is too low.',
  },
  notFound: {
    gsma: { category: 'identification', code: 'identifierError', description: 'No wallet has this number.' },
    checkout: 'payer-not-found',
    payout: 'recipient-account-inactive',
    message: 'No wallet has this number.',
  },
  limit: {
    gsma: { category: 'businessRule', code: 'dailyValueLimitExceeded', description: 'A limit is reached.' },
    checkout: 'payer-limit-exceeded',
    payout: 'recipient-limit-exceeded',
    message: 'A limit of the account is reached.',
  },
  blocked: {
    gsma: { category: 'businessRule', code: 'incorrectState', description: 'The account is blocked.' },
    checkout: 'blocked-account',
    payout: 'recipient-account-blocked',
    message: 'The account is blocked.',
  },
  wrongPin: {
    gsma: {
      category: 'authorisation',
      code: 'servicingPartyAuthorisationError',
      description: 'Three wrong PINs.',
    },
    checkout: 'payer-authentication-failed',
    payout: 'payment-failure',
    message: 'Three wrong PINs.',
  },
  busy: {
    gsma: {
      category: 'businessRule',
      code: 'genericError',
      description: 'Another session is open on this telephone.',
      detail: 'subscriberBusy',
    },
    checkout: 'payer-busy',
    payout: 'payment-failure',
    message: 'Another session is open on this telephone.',
  },
  expired: {
    gsma: {
      category: 'businessRule',
      code: 'genericError',
      description: 'The customer did not answer in time.',
      detail: 'promptExpired',
    },
    checkout: null,
    payout: 'payment-failure',
    message: 'The customer did not answer in time.',
  },
  cancelled: {
    gsma: {
      category: 'businessRule',
      code: 'genericError',
      description: 'Withdrawn by the requesting organisation.',
      detail: 'cancelledByRequester',
    },
    checkout: null,
    payout: 'payment-failure',
    message: 'Withdrawn by the merchant.',
  },
  notReversible: {
    gsma: { category: 'businessRule', code: 'incorrectState', description: 'This cannot be reversed.' },
    checkout: 'checkout-refund-failed',
    payout: 'payout-reversal-not-possible',
    message: 'This cannot be reversed.',
  },
}

/** Returns the GSMA words for a refusal; a payee's limit has another code than a payer's. */
export function gsmaFault(reason: Reason, kind: SimulatedOperationKind): GsmaFault {
  const words = reasons[reason].gsma
  return reason === 'limit' && kind === 'disburse' ? { ...words, code: 'maxBalanceExceeded' } : words
}

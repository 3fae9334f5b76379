/**
 * The words for a failure: who can resolve it, whether and when to try again, and a sentence in each
 * language.
 */
interface FailureWords {
  who: 'customer' | 'merchant' | 'platform' | 'operator'
  again: 'now' | 'later' | 'no'
  messageFr: string
  messageEn: string
}

/**
 * The reasons why an operation was not done. Every driver maps its operator's own codes to them, except to
 * `OPERATOR_UNAVAILABLE` and `INSUFFICIENT_BALANCE`, which only this service gives. The sentences are for the
 * merchant. They stay vague about failures that only the platform can resolve. Pages have their own words for
 * payers.
 */
export const failureReasons = {
  PAYER_DECLINED: {
    who: 'customer',
    again: 'now',
    messageFr: 'Le client a refusé le paiement.',
    messageEn: 'The customer declined the payment.',
  },
  PAYER_TIMEOUT: {
    who: 'customer',
    again: 'now',
    messageFr: 'Le paiement n’a pas été confirmé à temps.',
    messageEn: 'The payment was not confirmed in time.',
  },
  PAYER_NOT_FOUND: {
    who: 'customer',
    again: 'no',
    messageFr: 'Aucun compte mobile money n’existe pour ce numéro.',
    messageEn: 'This number has no mobile-money account.',
  },
  PAYER_NOT_ALLOWED: {
    who: 'customer',
    again: 'no',
    messageFr: 'Ce compte n’est pas autorisé à faire ce paiement.',
    messageEn: 'This account may not make this payment.',
  },
  PAYER_INSUFFICIENT_FUNDS: {
    who: 'customer',
    again: 'later',
    messageFr: 'Le solde du compte est insuffisant.',
    messageEn: 'The account does not hold enough money.',
  },
  PAYER_LIMIT_REACHED: {
    who: 'customer',
    again: 'later',
    messageFr: 'Le compte a atteint son plafond.',
    messageEn: 'The account has reached its limit.',
  },
  PAYER_BUSY: {
    who: 'customer',
    again: 'later',
    messageFr: 'Le téléphone traite une autre opération. Réessayez dans une minute.',
    messageEn: 'The telephone is busy with another operation. Try again in a minute.',
  },
  PAYER_AUTH_FAILED: {
    who: 'customer',
    again: 'now',
    messageFr: 'Le code saisi est incorrect.',
    messageEn: 'The code that was entered is wrong.',
  },
  PAYER_MISMATCH: {
    who: 'customer',
    again: 'now',
    messageFr: 'Ce paiement doit venir du numéro indiqué.',
    messageEn: 'This payment must come from the number that was given.',
  },
  PAYEE_NOT_FOUND: {
    who: 'merchant',
    again: 'no',
    messageFr: 'Le bénéficiaire n’a pas de compte mobile money.',
    messageEn: 'The recipient has no mobile-money account.',
  },
  PAYEE_NOT_ALLOWED: {
    who: 'merchant',
    again: 'no',
    messageFr: 'Le compte du bénéficiaire ne peut pas recevoir d’argent.',
    messageEn: 'The account of the recipient cannot receive money.',
  },
  PAYEE_LIMIT_REACHED: {
    who: 'merchant',
    again: 'later',
    messageFr: 'Le compte du bénéficiaire a atteint son plafond.',
    messageEn: 'The account of the recipient has reached its limit.',
  },
  PAYEE_NAME_MISMATCH: {
    who: 'merchant',
    again: 'no',
    messageFr: 'Le nom donné n’est pas celui du titulaire du numéro.',
    messageEn: 'The name given is not that of the holder of the number.',
  },
  FLOAT_INSUFFICIENT: {
    who: 'platform',
    again: 'later',
    messageFr: 'Service momentanément indisponible.',
    messageEn: 'The service is temporarily unavailable.',
  },
  PLATFORM_LIMIT_REACHED: {
    who: 'platform',
    again: 'later',
    messageFr: 'Service momentanément indisponible.',
    messageEn: 'The service is temporarily unavailable.',
  },
  AMOUNT_OUT_OF_RANGE: {
    who: 'merchant',
    again: 'no',
    messageFr: 'L’opérateur n’accepte pas ce montant.',
    messageEn: 'The operator does not accept this amount.',
  },
  CURRENCY_NOT_SUPPORTED: {
    who: 'platform',
    again: 'no',
    messageFr: 'L’opérateur n’accepte pas cette monnaie.',
    messageEn: 'The operator does not accept this currency.',
  },
  SAME_PARTIES: {
    who: 'merchant',
    again: 'no',
    messageFr: 'Le payeur et le bénéficiaire sont le même compte.',
    messageEn: 'The payer and the recipient are the same account.',
  },
  DUPLICATE_WINDOW: {
    who: 'customer',
    again: 'later',
    messageFr: 'Un paiement identique vient de passer. Patientez avant de recommencer.',
    messageEn: 'The same payment was just made. Wait before making another.',
  },
  NOT_REVERSIBLE: {
    who: 'merchant',
    again: 'no',
    messageFr: 'Cette opération ne peut plus être annulée.',
    messageEn: 'This operation cannot be reversed any more.',
  },
  ALREADY_REVERSED: {
    who: 'merchant',
    again: 'no',
    messageFr: 'Cette opération a déjà été annulée.',
    messageEn: 'This operation was reversed already.',
  },
  CANCELLED: {
    who: 'merchant',
    again: 'now',
    messageFr: 'Paiement annulé.',
    messageEn: 'The payment was cancelled.',
  },
  OPERATION_NOT_SUPPORTED: {
    who: 'platform',
    again: 'no',
    messageFr: 'L’opérateur ne propose pas cette opération.',
    messageEn: 'The operator does not offer this operation.',
  },
  INVALID_REQUEST: {
    who: 'platform',
    again: 'no',
    messageFr: 'L’opérateur n’a pas compris la demande.',
    messageEn: 'The operator did not understand the request.',
  },
  CREDENTIALS_REJECTED: {
    who: 'platform',
    again: 'later',
    messageFr: 'Service momentanément indisponible.',
    messageEn: 'The service is temporarily unavailable.',
  },
  OPERATOR_UNAVAILABLE: {
    who: 'operator',
    again: 'later',
    messageFr: 'L’opérateur est indisponible. Réessayez plus tard.',
    messageEn: 'The operator is unavailable. Try again later.',
  },
  /** A payout was due, and the available balance of its merchant did not cover it. */
  INSUFFICIENT_BALANCE: {
    who: 'merchant',
    again: 'later',
    messageFr: 'Le solde disponible ne couvrait pas ce paiement à sa date.',
    messageEn: 'The available balance did not cover this payout when it was due.',
  },
  UNSPECIFIED: {
    who: 'operator',
    again: 'later',
    messageFr: 'Le paiement n’a pas abouti.',
    messageEn: 'The payment did not succeed.',
  },
} as const satisfies Record<string, FailureWords>

export type FailureReason = keyof typeof failureReasons

/** Returns the reason as a key of the table (`UNSPECIFIED` if the table lacks it); null if nothing failed. */
export function failureOf(reason: string | null): FailureReason | null {
  if (reason === null) return null
  return Object.hasOwn(failureReasons, reason) ? (reason as FailureReason) : 'UNSPECIFIED'
}

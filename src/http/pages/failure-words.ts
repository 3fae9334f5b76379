import type { FailureReason } from '../../operators/failure-reasons.ts'
import type { PageLanguage } from './layout.ts'

type Said = Readonly<Record<PageLanguage, string>>

const closed: Said = {
  fr: 'Le commerçant ne peut pas recevoir ce paiement. Prévenez-le.',
  en: 'The merchant cannot receive this payment. Please tell them.',
}
const later: Said = {
  fr: 'Le service est momentanément indisponible. Réessayez plus tard.',
  en: 'The service is unavailable for a moment. Try again later.',
}
const another: Said = {
  fr: 'Cet opérateur n’accepte pas ce paiement. Choisissez un autre opérateur.',
  en: 'This operator does not accept this payment. Choose another operator.',
}
const unspecified: Said = {
  fr: 'Votre opérateur n’a pas confirmé ce paiement.',
  en: 'Your operator did not confirm this payment.',
}

/** The reason why a payment failed, in words for the payer; merchants read it in `failureReasons`. */
export const failureWords: Readonly<Record<FailureReason, Said>> = {
  PAYER_DECLINED: { fr: 'Vous avez refusé ce paiement.', en: 'You declined this payment.' },
  PAYER_TIMEOUT: {
    fr: 'Vous n’avez pas confirmé ce paiement à temps.',
    en: 'You did not confirm this payment in time.',
  },
  PAYER_NOT_FOUND: {
    fr: 'Votre numéro n’a pas de compte chez cet opérateur. Vérifiez le numéro et l’opérateur.',
    en: 'Your number has no account with this operator. Check the number and the operator.',
  },
  PAYER_NOT_ALLOWED: {
    fr: 'Votre compte n’est pas autorisé à faire ce paiement. Contactez votre opérateur.',
    en: 'Your account may not make this payment. Contact your operator.',
  },
  PAYER_INSUFFICIENT_FUNDS: { fr: 'Votre solde est insuffisant.', en: 'Your balance is too low.' },
  PAYER_LIMIT_REACHED: {
    fr: 'Votre compte a atteint son plafond.',
    en: 'Your account has reached its limit.',
  },
  PAYER_BUSY: {
    fr: 'Votre téléphone traite une autre opération. Réessayez dans une minute.',
    en: 'Your telephone is busy with another operation. Try again in a minute.',
  },
  PAYER_AUTH_FAILED: {
    fr: 'Le code que vous avez saisi est incorrect.',
    en: 'The code that you entered is wrong.',
  },
  PAYER_MISMATCH: {
    fr: 'Payez avec le numéro que vous avez indiqué.',
    en: 'Pay with the number that you gave.',
  },
  PAYEE_NOT_FOUND: closed,
  PAYEE_NOT_ALLOWED: closed,
  PAYEE_LIMIT_REACHED: closed,
  PAYEE_NAME_MISMATCH: closed,
  FLOAT_INSUFFICIENT: later,
  PLATFORM_LIMIT_REACHED: later,
  CREDENTIALS_REJECTED: later,
  AMOUNT_OUT_OF_RANGE: {
    fr: 'Votre opérateur n’accepte pas ce montant.',
    en: 'Your operator does not accept this amount.',
  },
  CURRENCY_NOT_SUPPORTED: another,
  OPERATION_NOT_SUPPORTED: another,
  INVALID_REQUEST: another,
  SAME_PARTIES: {
    fr: 'C’est le numéro du commerçant. Payez avec votre propre numéro.',
    en: 'This is the number of the merchant. Pay with your own number.',
  },
  DUPLICATE_WINDOW: {
    fr: 'Vous venez de faire le même paiement. Patientez avant de recommencer.',
    en: 'You have just made the same payment. Wait before you make another.',
  },
  CANCELLED: { fr: 'Ce paiement a été annulé.', en: 'This payment was cancelled.' },
  OPERATOR_UNAVAILABLE: {
    fr: 'Votre opérateur ne répond pas. Réessayez plus tard.',
    en: 'Your operator does not answer. Try again later.',
  },
  // The next three are reasons of reversals and payouts, which no payer sees.
  NOT_REVERSIBLE: unspecified,
  ALREADY_REVERSED: unspecified,
  INSUFFICIENT_BALANCE: unspecified,
  UNSPECIFIED: unspecified,
}

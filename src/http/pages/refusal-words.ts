import type { RefusalCode } from '../../shared/errors.ts'

/** The usual message of each refusal in French; the table of refusals has it in English. */
export const frenchRefusals: Readonly<Record<RefusalCode, string>> = {
  INVALID_INPUT: 'Des champs de la demande manquent ou sont incorrects.',
  UNAUTHENTICATED:
    'Le jeton d’accès manque, est incorrect, a expiré ou a été révoqué. Connectez-vous de nouveau.',
  CREDENTIALS_REJECTED: 'La clé d’API ou son secret est incorrect.',
  ACCOUNT_INACTIVE: 'Ce compte marchand est inactif. Adressez-vous aux responsables de ce service.',
  ADDRESS_NOT_ALLOWED:
    'Votre adresse IP n’est pas dans la liste autorisée de ce compte ou de cette clé. ' +
    'Un propriétaire ou un administrateur peut aider.',
  SECOND_FACTOR_REQUIRED:
    'Votre compte a un second facteur. Connectez-vous avec un code de votre application d’authentification.',
  FORBIDDEN: 'Une permission nécessaire (scope) manque au jeton. Connectez-vous avec cette permission.',
  LIMIT_EXCEEDED: 'Le paiement dépasse une limite de la clé d’API ou du jeton. Rien n’a été enregistré.',
  RATE_LIMITED: 'Trop de demandes. Réessayez plus tard.',
  NOT_FOUND: 'Introuvable : ce chemin ou cet identifiant n’existe pas.',
  METHOD_NOT_ALLOWED: 'Ce chemin n’accepte pas cette méthode HTTP.',
  BODY_TOO_LARGE: 'Le corps de la demande est trop grand. Envoyez moins de données à la fois.',
  MALFORMED_REQUEST: 'La demande HTTP est mal formée.',
  HEADERS_TOO_LARGE: 'L’adresse et les en-têtes de la demande sont trop grands. Envoyez-en moins.',
  REQUEST_TIMEOUT: 'La demande a mis trop de temps à arriver. Renvoyez-la.',
  UNSUPPORTED_MEDIA_TYPE: 'Le corps de la demande doit être en JSON, avec Content-Type: application/json.',
  DUPLICATE_REFERENCE:
    'Une transaction avec cette référence existe déjà. Prenez une autre référence pour un autre paiement.',
  DUPLICATE_PAYOUT:
    'Un retrait avec cette référence existe déjà. Prenez une autre référence pour un autre retrait.',
  LINK_CLOSED: 'Ce lien de paiement n’accepte plus de paiements.',
  AMOUNT_CHANGED:
    'Le montant de ce lien a changé depuis que vous avez ouvert la page. Rien n’a été enregistré.',
  SLUG_TAKEN: 'Un autre lien de paiement utilise déjà cet url_slug. Choisissez-en un autre.',
  ALREADY_MEMBER: 'Un membre ou une personne invitée a déjà cette adresse e-mail.',
  AMBIGUOUS_REFERENCE:
    'Plusieurs marchands utilisent cette référence. Ajoutez merchant_id pour en choisir un.',
  IDEMPOTENCY_KEY_REUSED:
    'Cette Idempotency-Key a déjà servi à une autre demande, ou à celle-ci par l’autre API. ' +
    'Voyez ce que cette demande est devenue avant d’envoyer celle-ci sous une nouvelle clé.',
  IDEMPOTENCY_KEY_BUSY:
    'La première demande avec cette Idempotency-Key est encore en cours. Répétez-la dans un instant.',
  INSUFFICIENT_BALANCE: 'Le solde disponible ne couvre pas ce montant. Rien n’a été enregistré.',
  REFUND_TOO_LARGE: 'Le montant dépasse la partie du paiement qui n’est pas encore remboursée.',
  NOT_REFUNDABLE: 'Seul un paiement réussi et non annulé peut être remboursé.',
  STATE_CONFLICT: 'L’état actuel ne permet pas cette opération.',
  PAYMENT_REFUSED: 'L’opérateur a refusé le paiement. Il est enregistré comme échoué.',
  OPERATOR_UNAVAILABLE:
    'L’opérateur est hors d’atteinte pour le moment. Rien n’a été enregistré. Réessayez plus tard, ou ' +
    'prenez un autre moyen de paiement.',
  OPERATOR_UNREACHABLE:
    'L’opérateur n’a pas pu être joint. Le paiement n’a pas échoué. Redemandez dans un instant.',
  PAYMENTS_OUT_HALTED:
    'Les paiements sortants sont suspendus pour le moment. Rien n’a été enregistré. Réessayez plus tard.',
  INTERNAL: 'Une erreur s’est produite de notre côté. Réessayez plus tard.',
  OVERLOADED: 'Le service est occupé. Réessayez dans un instant.',
  SERVICE_DOWN: 'Le service n’est pas disponible pour le moment. Réessayez plus tard.',
}

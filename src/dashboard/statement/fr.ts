import { typeset } from '../words/typeset.ts'

/** The words of the statement in French. */
export const fr = typeset({
  title: (month: string) => `Relevé : ${month}`,
  paper: (month: string, merchant: string) => `Relevé ${month} · ${merchant}`,
  month: 'Mois',
  before: 'Mois précédent',
  after: 'Mois suivant',
  sums: 'Les chiffres du mois',
  opening: 'Solde au début',
  in: 'Entrées',
  out: 'Sorties',
  closing: 'Solde à la fin',
  now: 'Solde à ce moment',
  reserved: 'Dont mis de côté pour des versements en cours',
  receivable: 'Repris par un opérateur et encore dû',
  lines: 'Les mouvements',
  none: 'Aucun mouvement d’argent ce mois-ci.',
  time: 'Date',
  operation: 'Opération',
  amount: 'Montant',
  balance: 'Solde',
  more: 'Afficher la suite',
  leftOut:
    'L’argent seulement mis de côté, ou redevenu disponible, ne change pas le solde : ces lignes ne sont ' +
    'pas ici. Elles sont dans le fichier CSV.',
  print: 'Imprimer',
  progress: (read: string, total: string) => `${read} lignes sur ${total}…`,
  notPrinted: 'Toutes les lignes n’ont pas pu être lues. Réessayez.',
  tooLong: (total: string) =>
    `Ce mois a ${total} lignes : c’est trop long pour le papier. Téléchargez le fichier CSV.`,
  download: 'Télécharger (CSV)',
  madeAt: (moment: string) => `Fait le ${moment}`,
  goesOn: 'Il manque des lignes : pour les avoir toutes, imprimez avec le bouton « Imprimer » de la page.',
  owed: (amount: string) => `somme due : ${amount}`,
  untitled: 'Paie sans titre',
  kinds: {
    received: 'Paiement reçu',
    refund: 'Remboursement',
    deposit: 'Dépôt',
    depositOrRefund: 'Dépôt ou remboursement',
    payout: 'Versement',
    payroll: 'Paie',
    payment: 'Paiement',
    testMoney: 'Argent d’essai ajouté',
    taken: 'Paiement repris par l’opérateur',
    givenBack: (kind: string) => `${kind} : argent rendu par l’opérateur`,
    owed: 'Paiement repris par l’opérateur : reste dû',
    recovered: 'Somme due, prise sur un encaissement',
    tooMuch: 'Un client a payé trop : en attente d’une décision',
    tooMuchKept: 'Un client avait payé trop : ajouté au solde',
    tooMuchReturned: 'Un client avait payé trop : rendu au client',
    unconfirmed: (kind: string) => `${kind} : somme non confirmée par l’opérateur, en attente d’une décision`,
    unconfirmedBack: (kind: string) => `${kind} : somme non confirmée, revenue sur le solde`,
    unconfirmedPaid: (kind: string) => `${kind} : somme non confirmée, finalement versée`,
    setAside: 'Argent mis de côté',
    freed: 'Argent de nouveau disponible',
  },
})

/** The words of the statement in one language. */
export type StatementWords = typeof fr

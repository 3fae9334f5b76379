import type { Reason } from '../model.ts'

export const languages = ['fr', 'en'] as const
export type PhoneLanguage = (typeof languages)[number]

interface Words {
  readonly language: string
  readonly other: string
  readonly simulator: string
  readonly noRealMoney: string
  readonly dashboard: string
  readonly phone: string
  readonly notFound: string
  readonly crossSite: string
  readonly operator: string
  readonly float: string
  readonly waiting: string
  readonly latest: string
  readonly nothingYet: string
  readonly testNumbers: string
  readonly testNumbersHint: string
  readonly later: string
  readonly yourNumber: string
  readonly open: string
  readonly waitingNumbers: string
  readonly noPrompt: string
  readonly balance: string
  readonly noWallet: string
  readonly requests: string
  readonly noRequest: string
  readonly payTo: string
  readonly receive: string
  readonly openCheckout: string
  readonly pin: string
  readonly pinHint: string
  readonly wrongPin: string
  readonly confirm: string
  readonly refuse: string
  readonly cancel: string
  readonly accept: string
  readonly messages: string
  readonly noMessage: string
  readonly refresh: string
  readonly reference: string
  readonly until: string
  readonly amountToPay: string
  readonly answersItself: string
  readonly paid: string
  readonly notPaid: string
  readonly expired: string
  readonly back: string
  readonly payerMismatch: string
  readonly states: Readonly<Record<'pending' | 'completed' | 'failed' | 'reversed', string>>
  readonly kinds: Readonly<Record<'collect' | 'disburse' | 'reverse', string>>
  readonly receipts: Readonly<Record<'collect' | 'disburse' | 'reverse', string>>
  readonly reasons: Readonly<Record<Reason, string>>
}

/** All words on the simulator's pages. */
export const words: Readonly<Record<PhoneLanguage, Words>> = {
  fr: {
    language: 'Français',
    other: 'English',
    simulator: 'Simulateur d’opérateurs',
    noRealMoney: 'Aucun argent réel ne circule ici.',
    dashboard: 'Tableau de bord',
    phone: 'Téléphone',
    notFound: 'Cette page n’existe pas.',
    crossSite: 'Ce formulaire vient d’un autre site : il est refusé.',
    operator: 'Opérateur',
    float: 'Réserve',
    waiting: 'en attente',
    latest: 'Dernières opérations',
    nothingYet: 'Rien pour l’instant.',
    testNumbers: 'Numéros de test',
    testNumbersHint: '+223 70 SS PP xx ; tout autre numéro paie après 3 secondes.',
    later: 'bientôt',
    yourNumber: 'Numéro de téléphone',
    open: 'Ouvrir ce téléphone',
    waitingNumbers: 'Téléphones avec une demande en attente',
    noPrompt: 'Aucune demande en attente.',
    balance: 'Solde',
    noWallet: 'Pas encore de compte : il s’ouvre à la première opération.',
    requests: 'Demandes',
    noRequest: 'Aucune demande.',
    payTo: 'Paiement demandé',
    receive: 'Argent à recevoir',
    openCheckout: 'Ouvrir la page de paiement',
    pin: 'Code secret',
    pinHint: 'Le code est 0000 ; trois codes incorrects arrêtent l’opération.',
    wrongPin: 'Code incorrect. Essais restants :',
    confirm: 'Confirmer',
    refuse: 'Refuser',
    cancel: 'Annuler',
    accept: 'Accepter',
    messages: 'Messages',
    noMessage: 'Aucun message.',
    refresh: 'Actualiser',
    reference: 'Réf.',
    until: 'Valable jusqu’à',
    amountToPay: 'À payer',
    answersItself: 'Ce numéro de test répond tout seul ; la page s’actualise.',
    paid: 'Paiement effectué',
    notPaid: 'Paiement non effectué',
    expired: 'Cette page de paiement est fermée.',
    back: 'Retour au commerçant',
    payerMismatch: 'Payez avec le numéro indiqué.',
    states: { pending: 'en attente', completed: 'réussi', failed: 'échoué', reversed: 'annulé' },
    kinds: { collect: 'encaissement', disburse: 'versement', reverse: 'annulation' },
    receipts: { collect: 'Vous avez payé', disburse: 'Vous avez reçu', reverse: 'Opération annulée :' },
    reasons: {
      declined: 'refusé par le client',
      insufficientFunds: 'solde insuffisant',
      notFound: 'aucun compte à ce numéro',
      limit: 'plafond atteint',
      blocked: 'compte bloqué',
      wrongPin: 'trois codes incorrects',
      busy: 'une autre session est ouverte',
      expired: 'délai dépassé',
      cancelled: 'annulé par le commerçant',
      notReversible: 'ne peut pas être annulé',
    },
  },
  en: {
    language: 'English',
    other: 'Français',
    simulator: 'Operator simulator',
    noRealMoney: 'No real money moves here.',
    dashboard: 'Dashboard',
    phone: 'Telephone',
    notFound: 'There is no such page.',
    crossSite: 'This form comes from another site, so it is refused.',
    operator: 'Operator',
    float: 'Float',
    waiting: 'waiting',
    latest: 'Latest operations',
    nothingYet: 'Nothing yet.',
    testNumbers: 'Test numbers',
    testNumbersHint: '+223 70 SS PP xx; any other number pays after 3 seconds.',
    later: 'soon',
    yourNumber: 'Telephone number',
    open: 'Open this telephone',
    waitingNumbers: 'Telephones with a waiting request',
    noPrompt: 'No request is waiting.',
    balance: 'Balance',
    noWallet: 'No wallet yet: it opens with the first operation.',
    requests: 'Requests',
    noRequest: 'No request.',
    payTo: 'Payment requested',
    receive: 'Money to receive',
    openCheckout: 'Open the payment page',
    pin: 'PIN',
    pinHint: 'The PIN is 0000; three wrong PINs end the operation.',
    wrongPin: 'Wrong PIN. Tries left:',
    confirm: 'Confirm',
    refuse: 'Decline',
    cancel: 'Cancel',
    accept: 'Accept',
    messages: 'Messages',
    noMessage: 'No message.',
    refresh: 'Refresh',
    reference: 'Ref.',
    until: 'Valid until',
    amountToPay: 'To pay',
    answersItself: 'This test number answers by itself; the page refreshes.',
    paid: 'Paid',
    notPaid: 'Not paid',
    expired: 'This payment page is closed.',
    back: 'Back to the merchant',
    payerMismatch: 'Pay with the number shown.',
    states: { pending: 'waiting', completed: 'done', failed: 'failed', reversed: 'reversed' },
    kinds: { collect: 'collection', disburse: 'payout', reverse: 'reversal' },
    receipts: { collect: 'You paid', disburse: 'You received', reverse: 'Operation reversed:' },
    reasons: {
      declined: 'declined by the customer',
      insufficientFunds: 'insufficient funds',
      notFound: 'no wallet has this number',
      limit: 'limit reached',
      blocked: 'account blocked',
      wrongPin: 'three wrong PINs',
      busy: 'another session is open',
      expired: 'no answer in time',
      cancelled: 'withdrawn by the merchant',
      notReversible: 'cannot be reversed',
    },
  },
}

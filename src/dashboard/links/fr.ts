import { typeset } from '../words/typeset.ts'

/** The words of the payment links in French. */
export const fr = typeset({
  lead: 'Une page où vos clients paient, sans site web. Envoyez son adresse, ou imprimez son code QR.',
  start: 'Nouveau lien',
  none: 'Aucun lien encore.',
  noneOpen: 'Aucun lien ouvert.',
  all: 'Afficher aussi les liens fermés',
  newer: 'Plus récents',
  older: 'Plus anciens',
  back: 'Tous les liens',
  missing: 'Ce lien n’existe pas, ou il est d’un autre compte.',
  mayNot: 'Votre rôle ne permet pas de créer un lien.',
  anyAmount: 'montant libre',
  paidTimes: (count: string, limit: string | null) =>
    `payé ${count} fois${limit === null ? '' : ` sur ${limit}`}`,
  availabilities: { OPEN: 'ouvert', EXPIRED: 'expiré', EXHAUSTED: 'épuisé', INACTIVE: 'fermé' },
  openAgain: {
    OPEN: '',
    EXPIRED:
      'Le dernier jour est passé. Choisissez un autre dernier jour sous « Modifier » pour rouvrir le lien.',
    EXHAUSTED:
      'Tous les paiements permis sont faits ou en cours. ' +
      'Augmentez le nombre de paiements sous « Modifier » pour rouvrir le lien.',
    INACTIVE: '',
  },
  form: {
    title: 'Titre',
    titleHint: 'Le client le lit : « Sac de riz, 25 kg ».',
    amount: 'Montant',
    amountHint: 'De 100 à 1 000 000 F CFA. Vide : le client écrit le montant.',
    description: 'Description (facultative)',
    usageLimit: 'Nombre de paiements (facultatif)',
    usageLimitHint: 'Vide : sans limite.',
    expiresOn: 'Dernier jour (facultatif)',
    create: 'Créer le lien',
    save: 'Enregistrer',
    wrong: {
      title: 'Écrivez un titre de 200 caractères au plus.',
      amount: 'Écrivez un montant entier, de 100 à 1 000 000 F CFA.',
      description: 'La description a au plus 1 000 caractères.',
      usageLimit: 'Écrivez un nombre entier, au moins 1.',
      expiresAt: 'Choisissez un jour à venir.',
    },
    saved: 'Enregistré.',
  },
  address: 'Adresse de la page',
  copy: 'Copier l’adresse',
  copied: 'Copiée.',
  notCopied: 'Ce navigateur ne copie pas. Gardez le doigt sur l’adresse pour la copier.',
  whatsApp: 'Envoyer par WhatsApp',
  share: 'Partager…',
  message: (title: string, amount: string, url: string) => `${title}${amount && ` · ${amount}`}\n${url}`,
  qr: 'Code QR de la page de paiement',
  qrHint: 'Le client le lit avec l’appareil photo de son téléphone.',
  print: 'Imprimer',
  download: 'Télécharger l’image',
  payWith: 'Payez avec votre téléphone',
  received: 'Encaissé par ce lien',
  expires: 'Fin',
  open: 'Paiements en cours',
  payments: 'Derniers paiements',
  noPayment: 'Aucun paiement encore.',
  allPayments: 'Tous les paiements de ce lien',
  edit: 'Modifier',
  close: 'Fermer le lien',
  closeText: 'La page n’accepte plus de paiement, et dit pourquoi. Vous pouvez rouvrir le lien.',
  reopen: 'Rouvrir le lien',
})

/** The words of the payment links in one language. */
export type LinkWords = typeof fr

import { typeset } from '../words/typeset.ts'

/** The words of the settings in French. */
export const fr = typeset({
  title: 'Réglages',
  mayNot: 'Votre rôle ne permet pas de voir les réglages.',
  save: 'Enregistrer',
  saved: 'Enregistré.',
  shop: {
    title: 'Commerce',
    name: 'Nom',
    nameHint: 'Vos clients le lisent quand ils paient.',
    locale: 'Langue des e-mails à l’équipe',
    locales: { fr: 'Français', en: 'Anglais' },
    phone: 'Téléphone du commerce (facultatif)',
    address: 'Adresse (facultatif)',
    contactHint: 'Vos clients les voient quand ils paient, et sur leur reçu.',
    email: 'E-mail pour les messages du service (facultatif)',
    timeZone: 'Fuseau horaire',
    timeZoneHint: 'Il dit à quelle heure commence un jour dans les chiffres et les relevés.',
  },
  approvals: {
    title: 'Approbations',
    lead: 'Une deuxième personne regarde avant que l’argent sorte.',
    isOn: 'Les versements et les paies demandent une approbation',
    threshold: 'À partir de ce montant (0 : toujours)',
    required: 'Personnes qui doivent approuver',
    deposits: 'Les dépôts et les remboursements aussi',
    tooFew: (needed: number, others: number) =>
      `Celui qui demande n’approuve pas lui-même : il faut ${needed} autres personnes, et ` +
      `l’équipe n’en a que ${others}. Invitez-en d’abord, sinon rien ne pourra sortir.`,
    tooFewOne:
      'Celui qui demande n’approuve pas lui-même, et l’équipe n’a personne d’autre qui approuve. ' +
      'Invitez d’abord une personne, sinon rien ne pourra sortir.',
    team: 'Voir l’équipe',
    waits: 'Un changement moins strict attend une approbation : les règles d’avant valent encore.',
    waiting: 'Voir ce qui attend',
    conflict: 'Un autre changement attend déjà une approbation : approuvez-le ou refusez-le d’abord.',
    asked: 'Demandé : le changement attend une approbation.',
  },
  addresses: {
    title: 'Adresses autorisées',
    lead:
      'Seules ces adresses IP peuvent utiliser le compte, par un programme ou par ces pages. Vide ' +
      ': toutes.',
    field: 'Adresses',
    hint: 'Une par ligne, par exemple 41.73.96.10 ou 41.73.96.0/24. La vôtre doit en être.',
  },
  wrong: {
    businessName: 'Écrivez un nom de 200 caractères au plus.',
    notificationEmail: 'Écrivez une adresse e-mail complète, ou rien.',
    businessPhone: 'Écrivez un numéro complet, par exemple 76 12 34 56, ou rien.',
    businessAddress: 'Écrivez une adresse de 200 caractères au plus.',
    timeZone:
      'Ce fuseau horaire n’est pas possible ici : son écart avec l’heure universelle doit être ' +
      'd’heures entières.',
    approvalThreshold: 'Écrivez un montant entier, sans centimes.',
    approvalsRequired: 'Choisissez une, deux ou trois personnes.',
    ipWhitelist: 'Une adresse n’est pas correcte, ou la vôtre manque.',
    locale: 'Choisissez une langue.',
    payoutsRequireApproval: 'Ce choix n’est pas possible.',
    approvalsCoverDeposits: 'Ce choix n’est pas possible.',
  },
})

/** The words of the settings in one language. */
export type SettingsWords = typeof fr

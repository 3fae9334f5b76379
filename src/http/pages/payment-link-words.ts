import type { LinkAvailability } from '../../resources/payment-links/availability.ts'
import { limits } from '../../shared/limits.ts'
import { formatXof } from '../../shared/money.ts'
import type { PageLanguage } from './layout.ts'

const least = formatXof(limits.collectAmountMinXof)
const most = formatXof(limits.amountMaxXof)

const fr = {
  amount: 'Montant en F CFA',
  amountHint: `De ${least} à ${most}`,
  phone: 'Votre numéro de téléphone',
  phoneHint: 'Par exemple 76 12 34 56',
  operator: 'Votre opérateur',
  byNumber: 'Selon mon numéro',
  change: 'changer',
  isDown: 'indisponible',
  pay: 'Payer',
  busy: 'Un instant…',
  preview: (merchant: string, amount: string | null) =>
    amount === null ? `Payez ${merchant} par mobile money` : `Payez ${amount} à ${merchant} par mobile money`,
  promise: 'Vous confirmerez ensuite avec votre code secret. Ne le donnez à personne.',
  warning: 'Erreur\u{a0}: ',
  problems: {
    amount: 'Saisissez un montant en francs, par exemple 5 000.',
    amountLeast: `Le montant minimum est de ${least}.`,
    amountMost: `Le montant maximum est de ${most}.`,
    phone: 'Saisissez un numéro mobile du Mali à 8 chiffres, par exemple 76 12 34 56.',
    operator: 'Choisissez votre opérateur.',
    down: (operator: string) =>
      `${operator} ne répond pas en ce moment. Réessayez plus tard, ou choisissez un autre opérateur.`,
    asked: (minutes: number) =>
      'Ce numéro vient de recevoir plusieurs demandes. Répondez à la demande sur le téléphone, ' +
      `ou réessayez ${minutes < 60 ? `dans ${minutes} min` : 'plus tard'}.`,
    crowd: 'Beaucoup de personnes paient en ce moment. Réessayez dans une minute.',
    nearby: (minutes: number) =>
      'Plusieurs paiements sont déjà en cours depuis votre connexion. Terminez-les, ' +
      `ou réessayez ${minutes < 60 ? `dans ${minutes} min` : 'plus tard'}.`,
    changed: 'Le montant vient de changer. Vérifiez-le, puis payez. Aucune demande n’a été envoyée.',
  },
  closed: {
    title: 'Ce lien n’accepte plus de paiement',
    open: 'Vous pouvez payer avec ce lien.',
    expired: 'Il a expiré.',
    exhausted: 'Il a reçu tous les paiements prévus.',
    inactive: 'Le commerçant l’a fermé.',
    ask: (merchant: string) => `Pour payer, demandez un nouveau lien à ${merchant}.`,
  } satisfies Closed,
  inUse: {
    title: 'D’autres paiements sont en cours',
    text: (minutes: number) =>
      `Ce lien n’accepte pas d’autre paiement pour l’instant. Réessayez dans ${minutes} min.`,
  },
  missing: {
    title: 'Cette page n’existe pas',
    text: 'Vérifiez l’adresse, ou demandez à nouveau le lien à votre commerçant.',
  },
  none: {
    title: 'Le paiement n’est pas encore possible',
    text:
      'Aucun opérateur n’est relié à ce service pour l’instant. ' +
      'Demandez à votre commerçant un autre moyen de payer.',
  },
  down: {
    title: 'Service indisponible',
    text:
      'Le service est interrompu un moment. Rechargez cette page plus tard\u{a0}: ' +
      'rien ne sera débité deux fois.',
  },
  fault: {
    title: 'Une erreur s’est produite',
    text:
      'L’erreur vient de notre service. Si un paiement était en cours, son état n’est pas encore connu. ' +
      'Rechargez cette page dans un instant\u{a0}: rien ne sera débité deux fois.',
  },
  many: { title: 'Trop de demandes', text: 'Patientez un instant, puis revenez en arrière et réessayez.' },
  large: { title: 'Formulaire illisible', text: 'Revenez à la page du lien et recommencez.' },
  waiting: {
    title: 'Confirmez sur votre téléphone',
    asked: (operator: string, phone: string) => `${operator} envoie une demande au ${phone}.`,
    code: 'Vérifiez le montant et entrez votre code secret.',
    turns: 'Revenez ici\u{a0}: cette page affichera votre reçu.',
    nothing: 'Rien ne s’affiche\u{a0}?',
    look: (operator: string) =>
      `Le téléphone doit être allumé, avec du réseau. Regardez aussi dans le menu de ${operator}.`,
    hosted: (operator: string) => `Terminez chez ${operator}`,
    go: (operator: string) => `Continuer chez ${operator}`,
    hostedText: (operator: string) =>
      `${operator} vous demande de confirmer sur sa page. Vous reviendrez ensuite ici, à votre reçu.`,
    refresh: 'Actualiser cette page',
    wrongNumber: 'Ce n’est pas le bon numéro\u{a0}?',
    otherWay: 'Vous voulez payer autrement\u{a0}?',
    cancel: 'Annuler et recommencer',
    restart: 'Recommencer',
    onlyOne: 'Ne validez qu’une seule demande.',
    left: 'Temps pour confirmer\u{a0}:',
    minutes: (minutes: number) => (minutes === 1 ? 'environ 1 minute' : `environ ${minutes} minutes`),
    over: 'Le temps pour confirmer est sans doute écoulé. Nous vérifions auprès de l’opérateur.',
    ussd: (code: string) => `Vous pouvez aussi composer ${code}.`,
  },
  notCancelled: {
    title: 'La demande n’a pas pu être annulée',
    text:
      'L’opérateur n’a pas confirmé l’annulation\u{a0}: la demande peut encore être validée ' +
      'sur le téléphone. Si vous recommencez, ne validez qu’une seule demande.',
    back: 'Revenir à la demande',
    restart: 'Recommencer quand même',
  },
  done: {
    title: 'Paiement effectué',
    print: 'Imprimer le reçu',
    share: 'Envoyer le reçu par WhatsApp',
  },
  partial: {
    title: 'Paiement reçu en partie',
    text: (missing: string, merchant: string) =>
      `Il manque ${missing}. Adressez-vous à ${merchant} avant de payer à nouveau.`,
  },
  reversed: {
    title: 'Paiement remboursé',
    text: 'Ce paiement a été annulé et remboursé sur votre compte.',
  },
  failed: {
    title: 'Le paiement n’a pas abouti',
    again: 'Réessayer',
    ask: (merchant: string) => `Pour payer, adressez-vous à ${merchant}.`,
    debited: 'Votre compte a été débité\u{a0}?',
    late:
      'Ne payez pas une seconde fois\u{a0}: cette page affichera votre reçu dès que l’opérateur aura ' +
      'confirmé le paiement.',
  },
  receipt: {
    merchant: 'Commerçant',
    about: 'Pour',
    requested: 'Montant demandé',
    refunded: 'Remboursé',
    date: 'Date',
    phone: 'Téléphone',
    operator: 'Opérateur',
    operatorReference: 'Référence de l’opérateur',
    reference: 'Référence',
  },
}

type Closed = Record<LinkAvailability | 'title', string> & { ask: (merchant: string) => string }

const en: typeof fr = {
  amount: 'Amount in F CFA',
  amountHint: `From ${least} to ${most}`,
  phone: 'Your telephone number',
  phoneHint: 'For example 76 12 34 56',
  operator: 'Your operator',
  byNumber: 'By my number',
  change: 'change',
  isDown: 'unavailable',
  pay: 'Pay',
  busy: 'One moment…',
  preview: (merchant, amount) =>
    amount === null ? `Pay ${merchant} by mobile money` : `Pay ${amount} to ${merchant} by mobile money`,
  promise: 'You will then confirm with your secret code. Never share it.',
  warning: 'Error: ',
  problems: {
    amount: 'Enter an amount in francs, for example 5,000.',
    amountLeast: `The smallest amount is ${least}.`,
    amountMost: `The largest amount is ${most}.`,
    phone: 'Enter a mobile number of Mali with 8 digits, for example 76 12 34 56.',
    operator: 'Choose your operator.',
    down: (operator) => `${operator} does not answer now. Try again later, or choose another operator.`,
    asked: (minutes) =>
      'Several requests were just sent to this number. Answer the request on the telephone, ' +
      `or try again ${minutes < 60 ? `in ${minutes} min` : 'later'}.`,
    crowd: 'Many people are paying at this moment. Try again in a minute.',
    nearby: (minutes) =>
      'Several payments are under way from your connection. Finish them, ' +
      `or try again ${minutes < 60 ? `in ${minutes} min` : 'later'}.`,
    changed: 'The amount has just changed. Check it, then pay. No request was sent.',
  },
  closed: {
    title: 'This link no longer accepts payments',
    open: 'You can pay with this link.',
    expired: 'It has expired.',
    exhausted: 'It has received all its payments.',
    inactive: 'The merchant closed it.',
    ask: (merchant) => `To pay, ask ${merchant} for a new link.`,
  },
  inUse: {
    title: 'Other payments are under way',
    text: (minutes) => `This link accepts no further payment for now. Try again in ${minutes} min.`,
  },
  missing: {
    title: 'This page does not exist',
    text: 'Check the address, or ask your merchant for the link again.',
  },
  none: {
    title: 'Payment is not possible yet',
    text: 'No operator is connected to this service at present. Ask your merchant for another way to pay.',
  },
  down: {
    title: 'Service unavailable',
    text:
      'The service is interrupted for a moment. Load this page again later: ' +
      'nothing will be charged twice.',
  },
  fault: {
    title: 'Something went wrong',
    text:
      'The error is on our side. If a payment was under way, its state is not known yet. ' +
      'Load this page again in a moment: nothing will be charged twice.',
  },
  many: { title: 'Too many requests', text: 'Wait a moment, then go back and try again.' },
  large: { title: 'The form cannot be read', text: 'Go back to the page of the link and begin again.' },
  waiting: {
    title: 'Confirm on your telephone',
    asked: (operator, phone) => `${operator} sends a request to ${phone}.`,
    code: 'Check the amount and enter your secret code.',
    turns: 'Come back here: this page will show your receipt.',
    nothing: 'No request on your telephone?',
    look: (operator) => `The telephone must be on, with a network. Also look in the menu of ${operator}.`,
    hosted: (operator) => `Finish at ${operator}`,
    go: (operator) => `Continue at ${operator}`,
    hostedText: (operator) =>
      `${operator} asks you to confirm on its page. Then it brings you back here, to your receipt.`,
    refresh: 'Refresh this page',
    wrongNumber: 'Not the right number?',
    otherWay: 'Rather pay in another way?',
    cancel: 'Cancel and start again',
    restart: 'Start again',
    onlyOne: 'Approve only one request.',
    left: 'Time to confirm:',
    minutes: (minutes) => (minutes === 1 ? 'about 1 minute' : `about ${minutes} minutes`),
    over: 'The time to confirm has probably run out. We are checking with the operator.',
    ussd: (code) => `You can also dial ${code}.`,
  },
  notCancelled: {
    title: 'The request could not be cancelled',
    text:
      'The operator did not confirm the cancellation: the request can still be approved on the telephone. ' +
      'If you start again, approve only one request.',
    back: 'Back to the request',
    restart: 'Start again anyway',
  },
  done: {
    title: 'Payment complete',
    print: 'Print the receipt',
    share: 'Send the receipt by WhatsApp',
  },
  partial: {
    title: 'Payment received in part',
    text: (missing, merchant) => `${missing} is missing. Contact ${merchant} before you pay again.`,
  },
  reversed: {
    title: 'Payment refunded',
    text: 'This payment was cancelled and refunded to your account.',
  },
  failed: {
    title: 'The payment was not completed',
    again: 'Try again',
    ask: (merchant) => `To pay, contact ${merchant}.`,
    debited: 'Was your account debited?',
    late: 'Do not pay a second time: this page shows your receipt as soon as the operator confirms.',
  },
  receipt: {
    merchant: 'Merchant',
    about: 'For',
    requested: 'Requested amount',
    refunded: 'Refunded',
    date: 'Date',
    phone: 'Telephone',
    operator: 'Operator',
    operatorReference: "Operator's reference",
    reference: 'Reference',
  },
}

/** All texts for the payers of a link. Amounts are written as in Mali, in both languages. */
export const words: Record<PageLanguage, typeof fr> = { fr, en }

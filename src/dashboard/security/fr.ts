import { typeset } from '../words/typeset.ts'

/** The words about a person's own way of signing in, in French. */
export const fr = typeset({
  factor: {
    title: 'Code à six chiffres',
    lead:
      'Avec lui, un mot de passe volé ne suffit pas : votre téléphone donne un nouveau code toutes les ' +
      '30 secondes.',
    isOn: 'Activé : vous vous connectez avec un code.',
    withoutCodes:
      'Activé. Si vous n’avez pas vu vos codes de secours, désactivez, puis activez de nouveau : vous en ' +
      'recevrez d’autres.',
    isOff: 'Pas activé.',
    password: 'Votre mot de passe',
    start: 'Activer',
    next: 'Continuer',
    scan: 'Ouvrez une application d’authentification sur votre téléphone et lisez ce code QR.',
    open: 'Sur ce téléphone : ouvrir l’application',
    secret: 'Ou écrivez cette clé dans l’application :',
    code: 'Code affiché par l’application',
    confirm: 'Confirmer',
    codes: 'Vos codes de secours',
    codesLead:
      'Sans votre téléphone, chacun remplace un code une fois. Ils ne sont plus affichés ensuite : ' +
      'imprimez-les ou écrivez-les.',
    codesLeave: 'Avez-vous gardé vos codes de secours ? Ils ne seront plus affichés.',
    codesPrint: 'Imprimer',
    codesKept: 'Je les ai gardés',
    stop: 'Désactiver',
    stopCode: 'Un code de l’application, ou un code de secours',
    stopped: 'Désactivé.',
    wrongPassword: 'Ce mot de passe est incorrect.',
    wrongCode: 'Ce code est incorrect ou a déjà servi. Attendez le suivant.',
    wrongEither: 'Le mot de passe ou le code est incorrect.',
    changed: 'L’état a changé entre-temps.',
    cancel: 'Annuler',
    qr: 'Code QR pour l’application d’authentification',
  },
  password: {
    title: 'Mot de passe',
    open: 'Changer le mot de passe',
    current: 'Mot de passe actuel',
    next: 'Nouveau mot de passe',
    hint: 'Au moins 12 caractères : une phrase se retient bien.',
    send: 'Changer',
    saved: 'Mot de passe changé. Vos autres appareils sont déconnectés.',
    wrongCurrent: 'Le mot de passe actuel est incorrect.',
    lost:
      'La réponse n’est pas arrivée. Réessayez : si le mot de passe actuel est alors refusé, c’est que le ' +
      'nouveau est déjà en place.',
    wrongAfterLost: 'Refusé : votre nouveau mot de passe est sans doute déjà en place.',
    tooWeak: 'Trop court, ou trop facile à deviner. Prenez au moins 12 caractères qui ne se devinent pas.',
  },
})

/** The words about signing in, in one language. */
export type SecurityWords = typeof fr

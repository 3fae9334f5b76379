/** The words of the dashboard in French, which is the language if no other one is chosen. */
export const fr = {
  title: 'Tableau de bord',
  otherLanguage: 'English',
  sandbox: 'Bac à sable : l’argent n’est pas réel.',
  production: 'Production',
  serviceWorks: 'Le service répond.',
  serviceFails: 'Le service ne répond pas. Réessayez dans un instant.',
  loading: 'Chargement…',
  notFound: 'Cette page n’existe pas.',
  toHome: 'Retour à l’accueil',
}

/** The words that every language has. */
export type Words = typeof fr

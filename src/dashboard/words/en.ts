import type { Words } from './fr.ts'

/** The words of the dashboard in English. */
export const en: Words = {
  title: 'Dashboard',
  otherLanguage: 'Français',
  sandbox: 'Sandbox: the money is not real.',
  production: 'Production',
  serviceWorks: 'The service answers.',
  serviceFails: 'The service does not answer. Try again in a moment.',
  loading: 'Loading…',
  notFound: 'This page does not exist.',
  toHome: 'Back to the start',
}

import { useLanguage } from '../language.ts'
import { en } from './en.ts'
import { fr, type TeamWords } from './fr.ts'

/** Gives a component the words of the team in the language of the visitor. */
export const useTeamWords = (): TeamWords => (useLanguage() === 'fr' ? fr : en)

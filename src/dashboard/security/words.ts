import { useLanguage } from '../language.ts'
import { en } from './en.ts'
import { fr, type SecurityWords } from './fr.ts'

/** Gives a component the words about signing in, in the language of the visitor. */
export const useSecurityWords = (): SecurityWords => (useLanguage() === 'fr' ? fr : en)

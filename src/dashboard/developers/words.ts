import { useLanguage } from '../language.ts'
import { en } from './en.ts'
import { type DeveloperWords, fr } from './fr.ts'

/** Gives a component the words of the screens for developers, in the language of the visitor. */
export const useDeveloperWords = (): DeveloperWords => (useLanguage() === 'fr' ? fr : en)

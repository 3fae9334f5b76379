import { useLanguage } from '../language.ts'
import { en } from './en.ts'
import { fr, type LinkWords } from './fr.ts'

/** Gives a component the words of the payment links in the language of the visitor. */
export const useLinkWords = (): LinkWords => (useLanguage() === 'fr' ? fr : en)

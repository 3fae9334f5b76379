import { useLanguage } from '../language.ts'
import { en } from './en.ts'
import { fr, type PayoutWords } from './fr.ts'

/** Gives a component the words of the payouts in the language of the visitor. */
export const usePayoutWords = (): PayoutWords => (useLanguage() === 'fr' ? fr : en)

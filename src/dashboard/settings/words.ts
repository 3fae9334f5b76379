import { useLanguage } from '../language.ts'
import { en } from './en.ts'
import { fr, type SettingsWords } from './fr.ts'

/** Gives a component the words of the settings, in the language of the visitor. */
export const useSettingsWords = (): SettingsWords => (useLanguage() === 'fr' ? fr : en)

import { useLanguage } from '../language.ts'
import { en } from './en.ts'
import { fr, type StatementWords } from './fr.ts'

/** Gives a component the words of the statement in the language of the visitor. */
export const useStatementWords = (): StatementWords => (useLanguage() === 'fr' ? fr : en)

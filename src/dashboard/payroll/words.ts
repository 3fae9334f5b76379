import { useLanguage } from '../language.ts'
import { en } from './en.ts'
import { fr, type PayrollWords } from './fr.ts'

/** Gives a component the words of the payrolls in the language of the visitor. */
export const usePayrollWords = (): PayrollWords => (useLanguage() === 'fr' ? fr : en)

/** Gives a component the words for a number of people. */
export function usePeople(): (count: number) => string {
  const { people } = usePayrollWords()
  const number = new Intl.NumberFormat(useLanguage())
  return (count) => people(number.format(count), count === 1)
}

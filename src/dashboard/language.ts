import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { fr, type Words } from './words/fr.ts'

export type AppLanguage = 'fr' | 'en'

const storeKey = 'language'

/** Chooses the language: the stored choice; else the first supported one of the browser; else French. */
export function chosenLanguage(): AppLanguage {
  const wanted = [storedLanguage(), ...navigator.languages.map((tag) => tag.slice(0, 2).toLowerCase())]
  return wanted.find((tag) => tag === 'fr' || tag === 'en') ?? 'fr'
}

/** Keeps the choice and loads the page anew, so that every text is in the chosen language. */
export function chooseLanguage(language: AppLanguage): void {
  try {
    localStorage.setItem(storeKey, language)
  } catch {
    // A browser that forbids storage shows the dashboard in its own language.
    return
  }
  location.reload()
}

/** Loads the words: the English ones are in a file of their own, which most visitors never load. */
export async function loadWords(language: AppLanguage): Promise<Words> {
  if (language === 'fr') return fr
  try {
    const { en } = await import('./words/en.ts')
    return en
  } catch {
    // Better the dashboard in French than none.
    return fr
  }
}

export const WordsContext = createContext<{ language: AppLanguage; words: Words }>({
  language: 'fr',
  words: fr,
})

/** Gives a component the words in the language of the visitor. */
export const useWords = (): Words => useContext(WordsContext).words

/** Gives a component the language of the visitor, for numbers, dates and the texts of the service. */
export const useLanguage = (): AppLanguage => useContext(WordsContext).language

function storedLanguage(): string | null {
  try {
    return localStorage.getItem(storeKey)
  } catch {
    return null
  }
}

import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { chooseLanguage, useLanguage, useWords } from './language.ts'
import { mode } from './page-facts.ts'

/** The frame of the pages that a stranger sees. */
export function Outside({ children }: { children: ComponentChildren }) {
  const words = useWords()
  useEffect(() => {
    document.title = words.title
  }, [])
  return (
    <>
      <header>
        <p>{words.service}</p>
        <TestBadge />
        <LanguageSwitch />
      </header>
      <main>{children}</main>
    </>
  )
}

/** Says on every page of a sandbox that the money is not real. */
export function TestBadge() {
  const words = useWords()
  return mode === 'sandbox' ? (
    <span className="badge" title={words.sandbox}>
      TEST
    </span>
  ) : null
}

/** Changes the language of every page. */
export function LanguageSwitch() {
  const words = useWords()
  const other = useLanguage() === 'fr' ? 'en' : 'fr'
  return (
    <button type="button" className="link" lang={other} onClick={() => chooseLanguage(other)}>
      {words.otherLanguage}
    </button>
  )
}

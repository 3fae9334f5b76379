import { useMutation } from '@urql/preact'
import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import { chooseLanguage, useLanguage, useWords } from './language.ts'
import { type SessionQuery, signOutMutation } from './operations.ts'
import { mode } from './page-facts.ts'
import { problemText } from './refusals.ts'
import type { SignInStart } from './screens/sign-in.tsx'

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

interface FrameProps {
  session: SessionQuery
  /** Called after the session was ended on purpose, with what the next sign-in knows. */
  onLeave: (next: SignInStart) => void
  children: ComponentChildren
}

/** The frame of the pages that a person sees: the account, the ways through the pages, and the way out. */
export function Frame({ session, onLeave, children }: FrameProps) {
  const words = useWords()
  const [path] = useLocation()
  const merchant = session.me?.merchant.name ?? ''
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    document.title = `${words.title} · ${merchant}`
  }, [merchant])
  // The focus moves to the content of a new page, for people with a keyboard or a screen reader.
  useEffect(() => {
    if (!isFirst.current) main.current?.focus()
    isFirst.current = false
  }, [path])
  return (
    <>
      <header>
        <p>{merchant}</p>
        <TestBadge />
        <PersonMenu key={path} session={session} onLeave={onLeave} />
      </header>
      <main ref={main} tabIndex={-1}>
        {children}
      </main>
    </>
  )
}

/** Says on every page of a sandbox that the money is not real. */
function TestBadge() {
  const words = useWords()
  return mode === 'sandbox' ? (
    <span className="badge" title={words.sandbox}>
      TEST
    </span>
  ) : null
}

function LanguageSwitch() {
  const words = useWords()
  const other = useLanguage() === 'fr' ? 'en' : 'fr'
  return (
    <button type="button" className="link" lang={other} onClick={() => chooseLanguage(other)}>
      {words.otherLanguage}
    </button>
  )
}

function PersonMenu({ session: { me, accounts }, onLeave }: Omit<FrameProps, 'children'>) {
  const words = useWords()
  const [problem, setProblem] = useState<string>()
  const [, signOut] = useMutation(signOutMutation)
  const menu = useRef<HTMLDetailsElement>(null)
  useEffect(() => closeOutside(menu), [])
  const member = me?.member
  if (!member) return null

  async function leave(next: SignInStart) {
    const { data, error } = await signOut({})
    const text = problemText(error, data?.signOut, words)
    setProblem(text)
    if (text === undefined) onLeave(next)
  }

  return (
    <details className="menu" ref={menu}>
      <summary>{member.name}</summary>
      <div className="card">
        <p className="soft">
          {member.email} · {words.roles[member.role]}
          <br />
          {words.merchantNumber(me.merchant.databaseId)}
        </p>
        <nav>
          <Link href="/">{words.home.title}</Link>
          <Link href="/sessions">{words.sessions.title}</Link>
          {(accounts ?? []).slice(1).map(({ merchantId, merchantName }) => (
            <button
              key={merchantId}
              type="button"
              className="link"
              onClick={() =>
                void leave({ email: member.email, merchantId, notice: words.signIn.toAccount(merchantName) })
              }
            >
              {words.switchTo(merchantName)}
            </button>
          ))}
          <LanguageSwitch />
          <button
            type="button"
            className="link"
            onClick={() => void leave({ notice: words.signIn.signedOut })}
          >
            {words.signOut}
          </button>
        </nav>
        {problem && (
          <p className="problem" role="alert">
            {problem}
          </p>
        )}
      </div>
    </details>
  )
}

/** Closes the menu with Escape, and with a click beside it. @returns a function that ends this */
function closeOutside(menu: RefObject<HTMLDetailsElement>): () => void {
  const close = (event: Event) => {
    const { current } = menu
    if (!current?.open || (event.type === 'click' && current.contains(event.target as Node))) return
    if (event instanceof KeyboardEvent && event.key !== 'Escape') return
    current.open = false
    if (event instanceof KeyboardEvent) current.querySelector('summary')?.focus()
  }
  for (const name of ['keydown', 'click']) addEventListener(name, close)
  return () => {
    for (const name of ['keydown', 'click']) removeEventListener(name, close)
  }
}

/** The page of a path that does not exist. */
export function NotFound() {
  const words = useWords()
  return (
    <section className="card">
      <h1>{words.notFound}</h1>
      <p>
        <Link href="/">{words.toHome}</Link>
      </p>
    </section>
  )
}

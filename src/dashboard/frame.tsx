import { useMutation } from '@urql/preact'
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import { chooseLanguage, useLanguage, useWords } from './language.ts'
import { type SessionQuery, signOutMutation } from './operations.ts'
import { mode } from './page-facts.ts'
import type { SignInStart } from './screens/sign-in.tsx'

/** The frame of the pages that a stranger sees. */
export function Outside({ children }: { children: ComponentChildren }) {
  const words = useWords()
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
  useEffect(() => {
    document.title = `${words.title} · ${merchant}`
  }, [merchant])
  return (
    <>
      <header>
        <p>{merchant}</p>
        <TestBadge />
        <PersonMenu key={path} session={session} onLeave={onLeave} />
      </header>
      <main>{children}</main>
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
  const member = me?.member
  if (!member) return null

  async function leave(next: SignInStart) {
    const { error } = await signOut({})
    if (error) setProblem(words.failure.network)
    else onLeave(next)
  }

  return (
    <details className="menu">
      <summary>{member.name}</summary>
      <div className="card">
        <p className="soft">
          {member.email} · {words.roles[member.role]}
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

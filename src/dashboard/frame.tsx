import { useMutation } from '@urql/preact'
import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link, useLocation, useSearch } from 'wouter-preact'
import { useWords } from './language.ts'
import { useMe } from './me.ts'
import { type SessionQuery, signOutMutation } from './operations.ts'
import { LanguageSwitch, TestBadge } from './outside.tsx'
import { problemText } from './refusals.ts'
import type { SignInStart } from './screens/sign-in.tsx'

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
  const { mayManageTeam } = useMe()
  const merchant = session.me?.merchant.name ?? ''
  const main = useRef<HTMLElement>(null)
  const query = useSearch()
  const shown = useRef({ path, query })
  const pages = [
    ['/', words.home.title],
    ['/payments', words.payments.title],
    ['/links', words.links],
    ['/payouts', words.payouts],
    ['/payroll', words.payroll],
    ['/approvals', words.approvals.title],
    ['/statement', words.statement],
    ...(mayManageTeam ? ([['/team', words.team]] as const) : []),
  ] as const
  const ofMenu = [
    ['/settings', words.settings],
    ['/developers', words.developers],
    ['/sessions', words.security],
  ] as const
  const page = [...pages, ...ofMenu].find(([href]) => currentOf(path, href))?.[1] ?? words.title
  useEffect(() => {
    document.title = `${page} · ${merchant}`
  }, [page, merchant])
  const isBack = useRef(false)
  useEffect(() => {
    const onBack = () => (isBack.current = true)
    addEventListener('popstate', onBack)
    return () => removeEventListener('popstate', onBack)
  }, [])
  // The focus moves to the content of a new page, for people with a keyboard or a screen reader. A page
  // begins at its top, but on the way back the browser returns to the position that the reader left.
  useEffect(() => {
    const isNewPage = shown.current.path !== path
    if (isNewPage && !isBack.current) scrollTo(0, 0)
    // A new filter of the same page may have replaced the field that had the focus.
    const isLost = shown.current.query !== query && document.activeElement === document.body
    if (isNewPage || isLost) main.current?.focus({ preventScroll: true })
    shown.current = { path, query }
    isBack.current = false
  }, [path, query])
  // A small screen does not show all names of the navigation.
  const names = useRef<HTMLElement>(null)
  useEffect(() => {
    names.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [page])
  return (
    <>
      <header>
        <p>{merchant}</p>
        <TestBadge />
        <PersonMenu key={path} session={session} onLeave={onLeave} />
      </header>
      <nav className="pages" ref={names} aria-label={words.nav}>
        {pages.map(([href, name]) => (
          <Link key={href} href={href} aria-current={currentOf(path, href)}>
            {name}
          </Link>
        ))}
      </nav>
      <main ref={main} tabIndex={-1}>
        {children}
      </main>
    </>
  )
}

/** Says whether a link of the navigation leads to the present page, or to the list of it. */
function currentOf(path: string, href: string): 'page' | 'true' | undefined {
  if (path === href) return 'page'
  return href !== '/' && path.startsWith(`${href}/`) ? 'true' : undefined
}

function PersonMenu({ session: { me, accounts }, onLeave }: Omit<FrameProps, 'children'>) {
  const words = useWords()
  const { mayChangeSettings, mayManageWebhooks } = useMe()
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
          {mayChangeSettings && <Link href="/settings">{words.settings}</Link>}
          {(mayChangeSettings || mayManageWebhooks) && <Link href="/developers">{words.developers}</Link>}
          <Link href="/sessions">{words.security}</Link>
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

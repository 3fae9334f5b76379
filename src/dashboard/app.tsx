import { CombinedError, useMutation, useQuery, type UseQueryState } from '@urql/preact'
import type { ComponentProps } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Route, Router, Switch } from 'wouter-preact'
import { anyMember } from './client.ts'
import { useWords } from './language.ts'
import { sandboxSignInMutation, type SessionQuery, sessionQuery } from './operations.ts'
import { Outside } from './outside.tsx'
import { basePath, cameWithoutSession, mode } from './page-facts.ts'
import { Failure, Loading } from './parts/states.tsx'
import { codeOf, problemText, refusalOf } from './refusals.ts'
import { ForgottenScreen } from './screens/forgotten.tsx'
import { type SignInStart, SignInScreen } from './screens/sign-in.tsx'
import { bindTo, onDoubt } from './session.ts'

/** The dashboard: at every path a stranger signs in, and a person sees the screen of the path. */
export function App() {
  return (
    <Router base={basePath}>
      <Gate />
    </Router>
  )
}

function Gate() {
  const [answer, read] = useQuery({ query: sessionQuery, context: anyMember })
  const again = () => read({ ...anyMember, requestPolicy: 'network-only' })
  const { data, error } = useLastKnown(answer)
  const [start, setStart] = useState<SignInStart>({})
  const wasSignedIn = useRef(false)
  wasSignedIn.current ||= data?.me != null
  useEffect(() => onDoubt(again), [])
  // Where the browser sent no session, the sign-in is there before the service says who asks.
  const isLikelyStranger = cameWithoutSession && linkToken === '' && !data && !error
  if (codeOf(error) === 'UNAUTHENTICATED' || isLikelyStranger) {
    return <Strangers start={start} hadSession={wasSignedIn.current} />
  }
  const member = data?.me?.member
  const isBound = member != null && bindTo(member.databaseId)
  if (member && !isBound) location.reload()
  if (!data?.me || !isBound) {
    return <Outside>{error ? <Failure error={error} retry={again} /> : <Loading />}</Outside>
  }
  return (
    <Screens
      session={{ ...data, me: data.me }}
      onLeave={(next) => {
        setStart(next)
        again()
      }}
    />
  )
}

const loadScreens = () => import('./person.tsx')
/** The screens of a person load while the service says who asks. */
const early = cameWithoutSession ? null : loadScreens().catch(() => null)

function Screens(props: ComponentProps<Awaited<ReturnType<typeof loadScreens>>['PersonScreens']>) {
  const [loaded, setLoaded] = useState<Awaited<typeof early>>()
  useEffect(() => void (early ?? loadScreens().catch(() => null)).then(setLoaded), [])
  if (loaded) return <loaded.PersonScreens {...props} />
  const error = new CombinedError({ networkError: new Error('The screens did not load.') })
  return (
    <Outside>
      {loaded === null ? <Failure error={error} retry={() => location.reload()} /> : <Loading />}
    </Outside>
  )
}

type SessionAnswer = UseQueryState<SessionQuery>

/**
 * Keeps the last answer that says who is signed in. While the question is asked again, and where it fails for
 * want of a network, the page stays as it is, with what the person typed.
 */
function useLastKnown(answer: SessionAnswer): Pick<SessionAnswer, 'data' | 'error'> {
  const known = useRef<Pick<SessionAnswer, 'data' | 'error'>>({})
  const says = answer.data?.me != null || codeOf(answer.error) === 'UNAUTHENTICATED'
  const isFirst = known.current.data === undefined && codeOf(known.current.error) === ''
  if (!answer.fetching && (says || isFirst)) known.current = answer
  return known.current
}

function Strangers({ start, hadSession }: { start: SignInStart; hadSession: boolean }) {
  const words = useWords()
  const [linkProblem, setLinkProblem] = useState<string>()
  if (linkToken !== '' && linkProblem === undefined && !hadSession) {
    return (
      <Outside>
        <LinkSignIn onProblem={setLinkProblem} />
      </Outside>
    )
  }
  const ended = hadSession ? words.signIn.ended : undefined
  const notice = start.notice ?? linkProblem ?? ended
  return (
    <Outside>
      <Switch>
        <Route path="/forgotten">
          <ForgottenScreen />
        </Route>
        <Route>
          <SignInScreen key={start.merchantId} start={notice ? { ...start, notice } : start} />
        </Route>
      </Switch>
    </Outside>
  )
}

/** The token that the address brought behind its `#`: a sandbox prints such a link, which works once. */
const linkToken = takeLinkToken()

function takeLinkToken(): string {
  if (mode !== 'sandbox') return ''
  const token = location.hash.slice(1)
  // The token must not stay in the address, nor in the history of the browser.
  if (token !== '') history.replaceState(null, '', location.pathname + location.search)
  // A link that is opened where the dashboard is open already changes only the part behind the `#`.
  addEventListener('hashchange', () => location.reload())
  return token
}

/** Signs the owner of a sandbox in by the link; the page then loads anew, with the cookie of the session. */
function LinkSignIn({ onProblem }: { onProblem: (problem: string) => void }) {
  const words = useWords()
  const [failed, setFailed] = useState<CombinedError>()
  const [, signIn] = useMutation(sandboxSignInMutation)
  const send = async () => {
    setFailed(undefined)
    const { data, error } = await signIn({ input: { token: linkToken, cookie: true } })
    const text = problemText(error, data?.sandboxSignIn, words)
    const isUsed = refusalOf(data?.sandboxSignIn)?.code === 'INVALID_INPUT'
    if (error) setFailed(error)
    else if (text === undefined) location.reload()
    else onProblem(isUsed ? words.signIn.usedLink : text)
  }
  useEffect(() => void send(), [])
  return failed ? <Failure error={failed} retry={() => void send()} /> : <Loading />
}

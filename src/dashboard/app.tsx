import { useMutation, useQuery } from '@urql/preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Route, Router, Switch } from 'wouter-preact'
import { Frame, NotFound, Outside } from './frame.tsx'
import { useWords } from './language.ts'
import { sandboxSignInMutation, sessionQuery } from './operations.ts'
import { basePath } from './page-facts.ts'
import { Failure, Loading } from './parts/states.tsx'
import { codeOf, refusalOf, refusalText } from './refusals.ts'
import { ForgottenScreen } from './screens/forgotten.tsx'
import { HomeScreen } from './screens/home.tsx'
import { SessionsScreen } from './screens/sessions.tsx'
import { type SignInStart, SignInScreen } from './screens/sign-in.tsx'
import { onSessionEnd } from './session-end.ts'

/** The dashboard: at every path a stranger signs in, and a person sees the screen of the path. */
export function App() {
  return (
    <Router base={basePath}>
      <Gate />
    </Router>
  )
}

function Gate() {
  const [{ data, error }, read] = useQuery({ query: sessionQuery })
  const again = () => read({ requestPolicy: 'network-only' })
  const wasSignedIn = useRef(false)
  wasSignedIn.current ||= data?.me != null
  const [start, setStart] = useState<SignInStart>({})
  useEffect(() => onSessionEnd(again), [])
  if (codeOf(error) === 'UNAUTHENTICATED') {
    return <Strangers start={start} hadSession={wasSignedIn.current} />
  }
  if (error && !data?.me) {
    return (
      <Outside>
        <Failure error={error} retry={again} />
      </Outside>
    )
  }
  if (!data?.me) {
    return (
      <Outside>
        <Loading />
      </Outside>
    )
  }
  return (
    <Frame
      session={data}
      onLeave={(next) => {
        setStart(next)
        again()
      }}
    >
      <Switch>
        <Route path="/">
          <HomeScreen />
        </Route>
        <Route path="/sessions">
          <SessionsScreen />
        </Route>
        <Route>
          <NotFound />
        </Route>
      </Switch>
    </Frame>
  )
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
  const token = location.hash.slice(1)
  // The token must not stay in the address, nor in the history of the browser.
  if (token !== '') history.replaceState(null, '', location.pathname + location.search)
  return token
}

/** Signs the owner of a sandbox in by the link; the page then loads anew, with the cookie of the session. */
function LinkSignIn({ onProblem }: { onProblem: (problem: string) => void }) {
  const words = useWords()
  const [, signIn] = useMutation(sandboxSignInMutation)
  useEffect(() => {
    void signIn({ input: { token: linkToken, cookie: true } }).then(({ data, error }) => {
      const refusal = refusalOf(data?.sandboxSignIn)
      if (error) onProblem(words.failure.network)
      else if (refusal?.code === 'INVALID_INPUT') onProblem(words.signIn.usedLink)
      else if (refusal) onProblem(refusalText(refusal, words))
      else location.reload()
    })
  }, [])
  return <Loading />
}

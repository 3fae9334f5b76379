import { useQuery } from '@urql/preact'
import { Link, Route, Router, Switch } from 'wouter-preact'
import { chooseLanguage, useLanguage, useWords } from './language.ts'
import { serviceQuery } from './operations.ts'
import { basePath, mode } from './page-facts.ts'

/** The frame of every screen, and the screens by their paths. */
export function App() {
  return (
    <Router base={basePath}>
      <TopBar />
      <main>
        <Switch>
          <Route path="/">
            <HomeScreen />
          </Route>
          <Route>
            <NotFoundScreen />
          </Route>
        </Switch>
      </main>
    </Router>
  )
}

function TopBar() {
  const words = useWords()
  const other = useLanguage() === 'fr' ? 'en' : 'fr'
  return (
    <header>
      <p>{words[mode]}</p>
      <button type="button" className="link" lang={other} onClick={() => chooseLanguage(other)}>
        {words.otherLanguage}
      </button>
    </header>
  )
}

function HomeScreen() {
  const words = useWords()
  const [{ data, error }] = useQuery({ query: serviceQuery })
  return (
    <>
      <h1>{words.title}</h1>
      <p role="status">
        {data?.serviceStatus ? words.serviceWorks : error ? words.serviceFails : words.loading}
      </p>
    </>
  )
}

function NotFoundScreen() {
  const words = useWords()
  return (
    <>
      <h1>{words.notFound}</h1>
      <p>
        <Link href="/">{words.toHome}</Link>
      </p>
    </>
  )
}

import { Link, Route, Switch } from 'wouter-preact'
import { useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { mode } from '../page-facts.ts'
import { EndpointScreen } from './endpoint.tsx'
import { EventsScreen } from './events.tsx'
import { KeyScreen } from './key.tsx'
import { NewKeyScreen } from './new-key.tsx'
import { OverviewScreen } from './overview.tsx'
import { SandboxScreen } from './sandbox.tsx'
import { useDeveloperWords } from './words.ts'

/** The screens for developers. They load when the person first opens one. */
export function DeveloperScreens() {
  const words = useDeveloperWords()
  const { mayChangeSettings, mayManageWebhooks } = useMe()
  if (!mayChangeSettings && !mayManageWebhooks)
    return (
      <>
        <h1>{words.title}</h1>
        <p>{words.mayNot}</p>
      </>
    )
  return (
    <Switch>
      <Route path="/developers">
        <OverviewScreen />
      </Route>
      <Route path="/developers/keys/new">
        <NewKeyScreen />
      </Route>
      <Route path="/developers/keys/:id">{({ id }) => <KeyScreen key={id} id={id} />}</Route>
      <Route path="/developers/webhooks/:id">{({ id }) => <EndpointScreen key={id} id={id} />}</Route>
      <Route path="/developers/events">
        <EventsScreen />
      </Route>
      {mode === 'sandbox' && (
        <Route path="/developers/sandbox">
          <SandboxScreen />
        </Route>
      )}
      <Route>
        <NotFound />
      </Route>
    </Switch>
  )
}

/** The page of a path that does not exist. */
function NotFound() {
  const { notFound } = useWords()
  const { back } = useDeveloperWords()
  return (
    <section className="card">
      <h1>{notFound}</h1>
      <p>
        <Link href="/developers">‹ {back}</Link>
      </p>
    </section>
  )
}

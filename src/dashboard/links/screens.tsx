import { Route, Switch } from 'wouter-preact'
import { LinkScreen } from './link.tsx'
import { LinksScreen } from './list.tsx'
import { NewLinkScreen } from './new-link.tsx'

/** The screens of the payment links. They load when the person first opens one. */
export function LinkScreens() {
  return (
    <Switch>
      <Route path="/links">
        <LinksScreen />
      </Route>
      <Route path="/links/new">
        <NewLinkScreen />
      </Route>
      <Route path="/links/:id">{({ id }) => <LinkScreen key={id} id={id} />}</Route>
    </Switch>
  )
}

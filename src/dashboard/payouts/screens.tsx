import { Route, Switch } from 'wouter-preact'
import { PayoutsScreen } from './list.tsx'
import { NewPayoutScreen } from './new-payout.tsx'
import { NewPayeeScreen, PayeeScreen } from './payee.tsx'
import { PayoutScreen } from './payout.tsx'
import { PeopleScreen } from './people.tsx'

/** The screens of payouts and of the people who are saved for them. They load when one is first opened. */
export function PayoutScreens() {
  return (
    <Switch>
      <Route path="/payouts">
        <PayoutsScreen />
      </Route>
      <Route path="/payouts/new">
        <NewPayoutScreen />
      </Route>
      <Route path="/payouts/people">
        <PeopleScreen />
      </Route>
      <Route path="/payouts/people/new">
        <NewPayeeScreen />
      </Route>
      <Route path="/payouts/people/:id">{({ id }) => <PayeeScreen key={id} id={id} />}</Route>
      <Route path="/payouts/:id">{({ id }) => <PayoutScreen key={id} id={id} />}</Route>
    </Switch>
  )
}

import { Route, Switch } from 'wouter-preact'
import { BatchScreen } from './batch.tsx'
import { PayrollsScreen } from './list.tsx'
import { UploadScreen } from './upload.tsx'

/** The screens of the payrolls. They load when the person first opens one. */
export function PayrollScreens() {
  return (
    <Switch>
      <Route path="/payroll">
        <PayrollsScreen />
      </Route>
      <Route path="/payroll/new">
        <UploadScreen />
      </Route>
      <Route path="/payroll/:id">{({ id }) => <BatchScreen key={id} id={id} />}</Route>
    </Switch>
  )
}

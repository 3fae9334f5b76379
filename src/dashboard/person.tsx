import { Link, Route, Switch } from 'wouter-preact'
import { Frame } from './frame.tsx'
import { useWords } from './language.ts'
import { MeContext, meOf } from './me.ts'
import type { SessionQuery } from './operations.ts'
import { later } from './parts/later.tsx'
import { HomeScreen } from './screens/home.tsx'
import { PaymentScreen } from './screens/payment.tsx'
import { PaymentsScreen } from './screens/payments.tsx'
import type { SignInStart } from './screens/sign-in.tsx'

const ApprovalsScreen = later(async () => (await import('./screens/approvals.tsx')).ApprovalsScreen)
const LinkScreens = later(async () => (await import('./links/screens.tsx')).LinkScreens)
const PayoutScreens = later(async () => (await import('./payouts/screens.tsx')).PayoutScreens)
const SecurityScreen = later(async () => (await import('./security/screen.tsx')).SecurityScreen)
const DeveloperScreens = later(async () => (await import('./developers/screens.tsx')).DeveloperScreens)
const SettingsScreen = later(async () => (await import('./settings/screen.tsx')).SettingsScreen)
const TeamScreens = later(async () => (await import('./team/screens.tsx')).TeamScreens)
const PayrollScreens = later(async () => (await import('./payroll/screens.tsx')).PayrollScreens)
const StatementScreen = later(async () => (await import('./statement/screen.tsx')).StatementScreen)

interface PersonScreensProps {
  session: SessionQuery & { me: NonNullable<SessionQuery['me']> }
  /** Called after the session was ended on purpose, with what the next sign-in knows. */
  onLeave: (next: SignInStart) => void
}

/** The screens of a signed-in person. A stranger's page does not load them. */
export function PersonScreens({ session, onLeave }: PersonScreensProps) {
  return (
    <MeContext.Provider value={meOf(session.me)}>
      <Frame session={session} onLeave={onLeave}>
        <Switch>
          <Route path="/">
            <HomeScreen />
          </Route>
          <Route path="/payments">
            <PaymentsScreen />
          </Route>
          <Route path="/payments/:id">{({ id }) => <PaymentScreen key={id} id={id} />}</Route>
          <Route path="/approvals">
            <ApprovalsScreen />
          </Route>
          <Route path="/links/*?">
            <LinkScreens />
          </Route>
          <Route path="/payouts/*?">
            <PayoutScreens />
          </Route>
          <Route path="/payroll/*?">
            <PayrollScreens />
          </Route>
          <Route path="/statement">
            <StatementScreen />
          </Route>
          <Route path="/developers/*?">
            <DeveloperScreens />
          </Route>
          <Route path="/settings">
            <SettingsScreen />
          </Route>
          <Route path="/team/*?">
            <TeamScreens />
          </Route>
          <Route path="/sessions">
            <SecurityScreen />
          </Route>
          <Route>
            <NotFound />
          </Route>
        </Switch>
      </Frame>
    </MeContext.Provider>
  )
}

/** The page of a path that does not exist. */
function NotFound() {
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

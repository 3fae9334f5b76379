import { Route, Switch } from 'wouter-preact'
import { useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { LogScreen } from './log.tsx'
import { MemberScreen } from './member.tsx'
import { TeamScreen } from './list.tsx'
import { useTeamWords } from './words.ts'

/** The screens of the team. They load when the person first opens one. */
export function TeamScreens() {
  const words = useTeamWords()
  const { failure } = useWords()
  const { mayManageTeam } = useMe()
  // A person without the right may have typed the address.
  if (!mayManageTeam)
    return (
      <section className="card">
        <h1>{words.title}</h1>
        <p>{failure.forbidden}</p>
      </section>
    )
  return (
    <Switch>
      <Route path="/team">
        <TeamScreen />
      </Route>
      <Route path="/team/log">
        <LogScreen />
      </Route>
      <Route path="/team/:id">{({ id }) => <MemberScreen key={id} id={id} />}</Route>
    </Switch>
  )
}

import { useMe } from '../me.ts'
import { settingsQuery } from '../operations.ts'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { AddressesForm } from './addresses-form.tsx'
import { ApprovalsForm } from './approvals-form.tsx'
import { ShopForm } from './shop-form.tsx'
import { useSettingsWords } from './words.ts'

/** The settings of the account. */
export function SettingsScreen() {
  const words = useSettingsWords()
  const { mayChangeSettings } = useMe()
  return (
    <>
      <h1>{words.title}</h1>
      {mayChangeSettings ? <Forms /> : <p>{words.mayNot}</p>}
    </>
  )
}

function Forms() {
  const { memberId } = useMe()
  const { data, error, again } = useSteadyQuery(settingsQuery, {})
  const settings = data?.settings
  if (!settings) return error ? <Failure error={error} retry={again} /> : <Loading />
  const members = data.members?.nodes ?? []
  const others = members.filter(
    ({ databaseId, role, status }) => status === 'ACTIVE' && role !== 'VIEWER' && databaseId !== memberId,
  )
  return (
    <>
      {error && <Stale retry={again} />}
      <div className="home">
        <ShopForm settings={settings} again={again} />
        <div className="stack">
          <ApprovalsForm settings={settings} others={others.length} again={again} />
          <AddressesForm settings={settings} again={again} />
        </div>
      </div>
    </>
  )
}

import { type OperationResult, useMutation } from '@urql/preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { useWords } from '../language.ts'
import { useMe } from '../me.ts'
import {
  changeRoleMutation,
  resendInvitationMutation,
  type MemberFragment,
  type MemberRole,
  removeMemberMutation,
} from '../operations.ts'
import { Confirmation } from '../parts/confirmation.tsx'
import { SelectField } from '../parts/select-field.tsx'
import { problemText, refusalOf } from '../refusals.ts'
import { doubtSession } from '../session.ts'
import { managedRoles } from './managed-roles.ts'
import { useIssuedKeys } from './use-issued-keys.ts'
import { useTeamWords } from './words.ts'

/** The time after which the sessions of a changed member have ended everywhere, in milliseconds. */
const sessionsEndMs = 1_500

interface MemberActionsProps {
  member: MemberFragment
  /** Reads the member again. */
  again: () => void
}

/** The changes of a member: another invitation, another role, and the end. */
export function MemberActions({ member, again }: MemberActionsProps) {
  const words = useTeamWords()
  const { role: own, memberId } = useMe()
  const [said, say] = useState<{ text: string; problemOf?: string }>()
  const state = `${member.role} ${member.status}`
  const endOf = useEndOf()
  const text = useRef<HTMLParagraphElement>(null)
  // The button that was pressed may be gone by now, and on a telephone this text may be out of sight.
  useEffect(() => {
    if (said) text.current?.focus()
  }, [said])
  if (!managedRoles(own).includes(member.role)) return <p className="soft">{words.mayNot}</p>

  /** Says how a change ended. @returns whether it was made */
  function conclude(result: OperationResult, done: string): boolean {
    const problem = endOf(result)
    say(problem === undefined ? { text: done } : { text: problem, problemOf: state })
    again()
    if (problem === undefined && member.databaseId === memberId) setTimeout(doubtSession, sessionsEndMs)
    return problem === undefined
  }

  return (
    <>
      {said?.problemOf === undefined ? (
        <p ref={text} tabIndex={-1} role="status">
          {said?.text}
        </p>
      ) : (
        // A change whose answer was lost may have been made: the member then says so.
        said.problemOf === state && (
          <p ref={text} tabIndex={-1} className="problem" role="alert">
            {said.text}
          </p>
        )
      )}
      {member.status === 'INVITED' && <AnotherInvitation id={member.id} conclude={conclude} />}
      <RoleChange member={member} conclude={conclude} />
      <Removal member={member} conclude={conclude} />
    </>
  )
}

/** Returns a reader of the end of a change: why it was not made; undefined where it was. */
function useEndOf() {
  const words = useTeamWords()
  const common = useWords()
  return ({ data, error }: OperationResult): string | undefined => {
    const [result] = Object.values((data ?? {}) as Record<string, object>)
    const code = refusalOf(result)?.code
    if (code === 'STATE_CONFLICT') return words.lastOwner
    return code === 'ALREADY_MEMBER' ? words.joined : problemText(error, result, common)
  }
}

/** Says how a change ended. It returns whether the change was made. */
type Conclude = (result: OperationResult, done: string) => boolean

function AnotherInvitation({ id, conclude }: { id: string; conclude: Conclude }) {
  const words = useTeamWords()
  const [{ fetching }, resendInvitation] = useMutation(resendInvitationMutation)
  const send = async () => conclude(await resendInvitation({ id }), words.againSent)
  return (
    <button type="button" className="quiet" aria-disabled={fetching} onClick={() => !fetching && void send()}>
      {words.again}
    </button>
  )
}

interface ChangeProps {
  member: MemberFragment
  conclude: Conclude
}

function RoleChange({ member, conclude }: ChangeProps) {
  const words = useTeamWords()
  const common = useWords()
  const { role: own } = useMe()
  const { id, role } = member
  // Without a choice of the person, the field follows the role, which may change in another window.
  const [choice, choose] = useState<MemberRole>()
  const chosen = choice ?? role
  const [{ fetching }, changeRole] = useMutation(changeRoleMutation)
  const change = async () => {
    if (conclude(await changeRole({ id, role: chosen }), words.change.saved)) choose(undefined)
  }
  return (
    <>
      <SelectField label={words.change.title} value={chosen} onValue={(next) => choose(next as MemberRole)}>
        {managedRoles(own).map((each) => (
          <option key={each} value={each}>
            {common.roles[each]}
          </option>
        ))}
      </SelectField>
      <p className="soft">{words.roles[chosen]}</p>
      {chosen !== role && (
        <Confirmation name={words.change.send} isSending={fetching} onConfirm={() => void change()}>
          <RoleConsequences member={member} role={common.roles[chosen]} />
        </Confirmation>
      )}
    </>
  )
}

function RoleConsequences({ member, role }: { member: MemberFragment; role: string }) {
  const { change: words } = useTeamWords()
  const { memberId } = useMe()
  const { names } = useIssuedKeys(member)
  if (member.status === 'INVITED') return <>{words.textOfInvited(role)}</>
  return (
    <>
      {member.databaseId === memberId ? words.textOfSelf(role) : words.text(role)}
      {names.length > 0 && ` ${words.keys(names.join(', '))}`}
    </>
  )
}

function Removal({ member, conclude }: ChangeProps) {
  const { remove: words } = useTeamWords()
  const [, goTo] = useLocation()
  const [{ fetching }, remove] = useMutation(removeMemberMutation)
  const end = async () => {
    const left = words.removed(member.name)
    if (conclude(await remove({ id: member.id }), left)) goTo('/team', { state: { left } })
  }
  return (
    <Confirmation name={words.name} isSending={fetching} onConfirm={() => void end()}>
      <RemovalConsequences member={member} />
    </Confirmation>
  )
}

function RemovalConsequences({ member }: { member: MemberFragment }) {
  const { remove: words } = useTeamWords()
  const { memberId } = useMe()
  const { names, areAll } = useIssuedKeys(member)
  if (member.status === 'INVITED') return <>{words.textOfInvited}</>
  return (
    <>
      {member.databaseId === memberId ? words.textOfSelf : words.text}
      {!areAll && ` ${words.someKeys}`}
      {names.length > 0 && ` ${words.keys(names.join(', '))}`}
    </>
  )
}

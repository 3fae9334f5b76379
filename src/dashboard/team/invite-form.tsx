import { useClient } from '@urql/preact'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { onceUnder } from '../client.ts'
import { useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { inviteMemberMutation, type MemberRole } from '../operations.ts'
import { Field } from '../parts/field.tsx'
import { SelectField } from '../parts/select-field.tsx'
import { useSave } from '../use-save.ts'
import { managedRoles } from './managed-roles.ts'
import { useTeamWords } from './words.ts'

const fields = ['name', 'email', 'role'] as const

interface Person {
  name: string
  email: string
  role: MemberRole
}

/** The form that invites a person. @param props.onInvited called with the e-mail address */
export function InviteForm({ onInvited }: { onInvited: (email: string) => void }) {
  const words = useTeamWords()
  const { roles } = useWords()
  const { role: own } = useMe()
  const client = useClient()
  const [person, setPerson] = useState<Person>({ name: '', email: '', role: 'VIEWER' })
  const invite = (input: Person, key: string) =>
    client.mutation(inviteMemberMutation, { input }, onceUnder(key)).toPromise()
  const { isSending, refused, save } = useSave(fields, invite, () => onInvited(person.email.trim()))
  const problemOf = (field: (typeof fields)[number]) =>
    refused === field ? words.invite.wrong[field] : undefined
  const submit = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (!isSending) void save({ ...person, name: person.name.trim(), email: person.email.trim() })
  }
  return (
    <form onSubmit={submit} noValidate>
      <Field
        label={words.invite.name}
        value={person.name}
        onValue={(name) => setPerson({ ...person, name })}
        autoComplete="off"
        maxLength={200}
        problem={problemOf('name')}
      />
      <Field
        label={words.invite.email}
        type="email"
        value={person.email}
        onValue={(email) => setPerson({ ...person, email })}
        autoComplete="off"
        inputMode="email"
        problem={problemOf('email')}
      />
      <SelectField
        label={words.invite.role}
        value={person.role}
        onValue={(role) => setPerson({ ...person, role: role as MemberRole })}
        problem={problemOf('role')}
      >
        {managedRoles(own).map((role) => (
          <option key={role} value={role}>
            {roles[role]}
          </option>
        ))}
      </SelectField>
      <p className="soft">{words.roles[person.role]}</p>
      {refused !== null && typeof refused !== 'string' && (
        <p className="problem" role="alert">
          {refused.code === 'ALREADY_MEMBER' ? words.invite.member : refused.text}
        </p>
      )}
      <button aria-disabled={isSending}>{words.invite.send}</button>
    </form>
  )
}

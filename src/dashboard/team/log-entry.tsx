import { Link } from 'wouter-preact'
import { formatInstant, formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { operatorLabel } from '../operator-label.ts'
import { changesOf, type Entry, type FieldChange, isMember, nameIn } from './log-changes.ts'
import type { NamedMembers } from './use-named-members.ts'
import { useTeamWords } from './words.ts'

/** The screens of the objects that changes are about, before their ids. */
const screens: Readonly<Record<string, string>> = {
  batch: '/payroll/',
  beneficiary: '/payouts/people/',
  member: '/team/',
  payment_link: '/links/',
  payout: '/payouts/',
  transaction: '/payments/',
}

interface EntryRowProps {
  entry: Entry
  members: NamedMembers
}

/** Shows a change: its moment, its author, and the fields that it wrote. */
export function EntryRow({ entry, members }: EntryRowProps) {
  const { entries: words } = useTeamWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const { at, address } = entry
  const deed = useDeed(entry)
  const actor = useActor(entry, members)
  const changes = changesOf(entry)
  return (
    <li className="below">
      <strong>{deed}</strong> <Target entry={entry} members={members} />
      <p className="soft">
        {formatInstant(at, language, timeZone)} · <bdi>{actor}</bdi>
        {address !== null && ` · ${address}`}
      </p>
      {changes.length > 0 && (
        <details>
          <summary>{words.details}</summary>
          <dl className="facts">
            {changes.map((change) => (
              <ChangedField key={change.field} change={change} members={members} />
            ))}
          </dl>
        </details>
      )}
    </li>
  )
}

/** Names the object of a change, with the way to its screen. A person who left has none. */
function Target({ entry, members }: EntryRowProps) {
  const { targets } = useTeamWords()
  const { target } = entry
  const [kind = '', part = ''] = target.split(':')
  const id = kind === 'operator' ? operatorLabel(part) : part
  if (kind === 'merchant' || kind === 'sandbox') return null
  const member = members.get(target)
  const named = member?.name ?? nameIn(entry)
  const name = named ?? targets[kind as keyof typeof targets]?.(id) ?? target
  const screen = kind === 'member' && !member?.isInTeam ? undefined : screens[kind]
  if (screen === undefined)
    return (
      <span className="soft">
        <bdi>{name}</bdi>
      </span>
    )
  return (
    <Link href={screen + id}>
      <bdi>{name}</bdi>
    </Link>
  )
}

/** Names a change. A change of one object may change another one too, such as the keys of a person. */
function useDeed({ operation, target }: Entry): string {
  const { operations } = useTeamWords()
  const words: Readonly<Record<string, string>> = operations
  return words[`${operation} ${target.split(':')[0]}`] ?? words[operation] ?? operation
}

/** Names the author of a change. */
function useActor({ actor }: Entry, members: NamedMembers): string {
  const { entries: words } = useTeamWords()
  const [kind, id = ''] = actor.split(':')
  if (kind === 'member') return members.get(actor)?.name ?? words.member(id)
  return kind === 'api_key' ? words.program(id) : words.platform
}

interface ChangedFieldProps {
  change: FieldChange
  members: NamedMembers
}

function ChangedField({ change: { field, was, is }, members }: ChangedFieldProps) {
  const { entries: words, fields } = useTeamWords()
  const valueText = useValueText(members)
  // Between two Arabic names the arrow would point from the new one to the old one.
  return (
    <div>
      <dt>{fields[field as keyof typeof fields] ?? field}</dt>
      <dd>
        {was !== null && (
          <>
            <bdi>{valueText(field, was)}</bdi> →{' '}
          </>
        )}
        {is === null ? words.removed : <bdi>{valueText(field, is)}</bdi>}
      </dd>
    </div>
  )
}

/** Returns a writer of the values of fields: people, moments and amounts as the other screens write them. */
function useValueText(members: NamedMembers): (field: string, value: unknown) => string {
  const language = useLanguage()
  const { roles } = useWords()
  const { timeZone } = useMe()
  const { entries: words, statuses, fields, values } = useTeamWords()
  const wordsOf: Readonly<Record<string, Readonly<Record<string, string>>>> = values
  const numberText = (field: string, value: number) => {
    if (isMember(field)) return members.get(`member:${value}`)?.name ?? words.member(String(value))
    return isAmount(field) ? formatXof(value, language) : String(value)
  }
  const wordText = (field: string, value: string) => {
    if (field === 'status') return statuses[value as keyof typeof statuses] ?? value
    if (field === 'role') return roles[value.toUpperCase() as keyof typeof roles] ?? value
    if (field === 'payment_method' || field === 'payment_methods') return operatorLabel(value)
    if (field.endsWith('_at')) return formatInstant(value, language, timeZone)
    return wordsOf[field]?.[value] ?? value
  }
  function valueText(field: string, value: unknown): string {
    if (typeof value === 'boolean') return value ? words.yes : words.no
    if (typeof value === 'number') return numberText(field, value)
    if (typeof value === 'string') return wordText(field, value)
    if (Array.isArray(value)) return value.map((one) => valueText(field, one)).join(', ')
    return Object.entries(value ?? {})
      .map(([name, part]) => words.field(fields[name as keyof typeof fields] ?? name, valueText(name, part)))
      .join(' · ')
  }
  return valueText
}

const isAmount = (field: string): boolean => /amount|threshold|funded|^max_per/.test(field)

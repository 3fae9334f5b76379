import { useQuery } from '@urql/preact'
import type { JSX } from 'preact'
import { useId, useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { useWords } from '../language.ts'
import { linkChoiceQuery } from '../operations.ts'
import {
  filterFields,
  kinds,
  operators,
  type PaymentFilter,
  readFilter,
  statusGroups,
  writeFilter,
} from '../payment-filter.ts'
import { operatorLabel } from '../operator-label.ts'

/** The form of a filter of payments. Its fields become the parameters of the address. */
export function FilterForm({ filter }: { filter: PaymentFilter }) {
  const words = useWords()
  const [, goTo] = useLocation()
  const { search, ...others } = filter
  const conditions = Object.values(others).filter((value) => value !== '').length
  const [isOpen, open] = useState(false)
  const apply = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const chosen = writeFilter(filterOf(new FormData(event.currentTarget), filter))
    goTo(chosen === '' ? '/payments' : `/payments?${chosen}`)
  }
  return (
    <form className="card filter" role="search" onSubmit={apply}>
      <div className="search">
        <input
          type="search"
          name="search"
          aria-label={words.payments.search}
          placeholder={words.payments.searchHint}
          defaultValue={search}
          maxLength={100}
          enterKeyHint="search"
        />
        <button type="submit" className="small">
          {words.payments.find}
        </button>
      </div>
      <details open={isOpen} onToggle={(event) => open(event.currentTarget.open)}>
        <summary>{words.payments.filters(conditions)}</summary>
        {isOpen && <Conditions filter={filter} />}
      </details>
    </form>
  )
}

/** Reads the fields. While the conditions are closed, those of the address stay. */
function filterOf(form: FormData, present: PaymentFilter): PaymentFilter {
  const given = new URLSearchParams(present)
  for (const name of filterFields) {
    const value = form.get(name)
    if (typeof value !== 'string') continue
    const isAmount = name === 'min' || name === 'max'
    given.set(name, isAmount ? value.replaceAll(/\D/g, '') : value)
  }
  return readFilter(given.toString())
}

function Conditions({ filter }: { filter: PaymentFilter }) {
  const words = useWords()
  const { payments } = words
  return (
    <div className="conditions">
      <Choice
        name="status"
        label={payments.status}
        value={filter.status}
        choices={keysOf(statusGroups).map((group) => [group, payments.statusGroups[group]])}
      />
      <Choice
        name="kind"
        label={payments.kind}
        value={filter.kind}
        choices={keysOf(kinds).map((kind) => [kind, payments.kinds[kind]])}
      />
      <Choice
        name="operator"
        label={payments.operator}
        value={filter.operator}
        choices={operators.map((operator) => [operator, operatorLabel(operator)])}
      />
      <Links value={filter.link} />
      <Bound name="from" label={payments.from} value={filter.from} type="date" />
      <Bound name="to" label={payments.to} value={filter.to} type="date" />
      <Bound name="min" label={payments.min} value={filter.min} type="text" />
      <Bound name="max" label={payments.max} value={filter.max} type="text" />
      <button type="submit">{payments.apply}</button>
    </div>
  )
}

const keysOf = <Name extends string>(record: Readonly<Record<Name, unknown>>) => Object.keys(record) as Name[]

interface ChoiceProps {
  name: string
  label: string
  value: string
  /** The values with their words. */
  choices: readonly (readonly [value: string, words: string])[]
}

function Choice({ name, label, value, choices }: ChoiceProps) {
  const words = useWords()
  const id = useId()
  return (
    <div className="field">
      <label for={id}>{label}</label>
      <select id={id} name={name} defaultValue={value}>
        <option value="">{words.payments.all}</option>
        {choices.map(([each, text]) => (
          <option key={each} value={each} selected={each === value}>
            {text}
          </option>
        ))}
      </select>
    </div>
  )
}

/** The newest links to choose from. The link of the filter is among them, also where it is an old one. */
function Links({ value }: { value: string }) {
  const words = useWords()
  const [{ data }] = useQuery({ query: linkChoiceQuery })
  const links = (data?.paymentLinks?.nodes ?? []).map(
    ({ databaseId, title }) => [String(databaseId), title] as const,
  )
  const isKnown = value === '' || links.some(([id]) => id === value)
  const choices = isKnown ? links : [...links, [value, words.payments.linkNumber(value)] as const]
  return <Choice name="link" label={words.payments.link} value={value} choices={choices} />
}

interface BoundProps {
  name: string
  label: string
  value: string
  type: 'date' | 'text'
}

function Bound({ name, label, value, type }: BoundProps) {
  const id = useId()
  return (
    <div className="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        name={name}
        type={type}
        defaultValue={value}
        inputMode={type === 'text' ? 'numeric' : undefined}
        autoComplete="off"
      />
    </div>
  )
}

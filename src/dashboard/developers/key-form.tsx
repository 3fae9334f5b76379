import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { dayOf, dayStart, readAmount } from '../format.ts'
import { useMe } from '../me.ts'
import type { CreateApiKeyInput, PaymentMethod, Scope } from '../operations.ts'
import { Field } from '../parts/field.tsx'
import { operators } from '../payment-filter.ts'
import type { Refused } from '../use-save.ts'
import { Choices } from './choices.tsx'
import { useDeveloperWords } from './words.ts'
import { operatorLabel } from '../operator-label.ts'

export const keyFields = [
  'name',
  'scopes',
  'expiresAt',
  'maxPerPayment',
  'maxPerDay',
  'paymentMethods',
  'addresses',
] as const
type KeyField = (typeof keyFields)[number]

/** The fields of a key as a person types them; an empty text is none. */
interface KeyDraft {
  name: string
  scopes: readonly Scope[]
  expiresOn: string
  maxPerPayment: string
  maxPerDay: string
  paymentMethods: readonly PaymentMethod[]
  addresses: string
}

const empty: KeyDraft = {
  name: '',
  scopes: [],
  expiresOn: '',
  maxPerPayment: '',
  maxPerDay: '',
  paymentMethods: [],
  addresses: '',
}

const dayMs = 86_400_000

/** Reads the form. @returns the input, or the first field that is wrong */
function inputOf(draft: KeyDraft, timeZone: string): CreateApiKeyInput | KeyField {
  const { name, scopes, expiresOn, paymentMethods } = draft
  if (name.trim() === '') return 'name'
  if (scopes.length === 0) return 'scopes'
  // The key works to the end of its last day.
  const lastNoon = expiresOn === '' ? null : Date.parse(`${expiresOn}T12:00:00Z`)
  if (lastNoon !== null && Number.isNaN(lastNoon)) return 'expiresAt'
  const expiresAt = lastNoon === null ? null : dayStart(dayOf(new Date(lastNoon + dayMs), 'UTC'), timeZone)
  if (expiresAt !== null && !(Date.parse(expiresAt) > Date.now())) return 'expiresAt'
  const maxPerPayment = limitOf(draft.maxPerPayment)
  if (maxPerPayment === 'wrong') return 'maxPerPayment'
  const maxPerDay = limitOf(draft.maxPerDay)
  if (maxPerDay === 'wrong') return 'maxPerDay'
  const addresses = draft.addresses.split(/[\s,;]+/).filter((address) => address !== '')
  const limits = {
    ...(maxPerPayment !== null && { maxPerPayment }),
    ...(maxPerDay !== null && { maxPerDay }),
    ...(paymentMethods.length > 0 && { paymentMethods: [...paymentMethods] }),
    ...(addresses.length > 0 && { addresses }),
  }
  return {
    name: name.trim(),
    scopes: [...scopes],
    ...(expiresAt !== null && { expiresAt }),
    ...(Object.keys(limits).length > 0 && { limits }),
  }
}

function limitOf(typed: string): number | null | 'wrong' {
  if (typed.trim() === '') return null
  return readAmount(typed) ?? 'wrong'
}

interface KeyFormProps {
  isSending: boolean
  refused: Refused<KeyField> | null
  onSend: (input: CreateApiKeyInput) => void
}

/** The form of a new API key. */
export function KeyForm({ isSending, refused, onSend }: KeyFormProps) {
  const { form: words, scopes } = useDeveloperWords()
  const { scopes: own, timeZone } = useMe()
  const [draft, setDraft] = useState(empty)
  const [wrong, setWrong] = useState<KeyField | null>(null)
  const given = wrong ?? (typeof refused === 'string' ? refused : null)
  const problemOf = (field: KeyField) => (given === field ? words.wrong[field] : undefined)
  const submit = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (isSending) return
    const input = inputOf(draft, timeZone)
    setWrong(typeof input === 'string' ? input : null)
    if (typeof input !== 'string') onSend(input)
  }
  return (
    <form onSubmit={submit}>
      <Field
        label={words.name}
        hint={words.nameHint}
        value={draft.name}
        onValue={(name) => setDraft({ ...draft, name })}
        autoComplete="off"
        maxLength={100}
        problem={problemOf('name')}
      />
      <Choices
        title={words.scopes}
        options={own.map((scope) => [scope, scopes[scope]])}
        chosen={draft.scopes}
        onChoose={(chosen) => setDraft({ ...draft, scopes: chosen })}
        problem={problemOf('scopes')}
      />
      <Field
        label={words.expires}
        type="date"
        value={draft.expiresOn}
        onValue={(expiresOn) => setDraft({ ...draft, expiresOn })}
        autoComplete="off"
        problem={problemOf('expiresAt')}
      />
      <Limits draft={draft} onDraft={setDraft} problemOf={problemOf} />
      {refused !== null && typeof refused !== 'string' && (
        <p className="problem" role="alert">
          {refused.text}
        </p>
      )}
      <button aria-disabled={isSending}>{words.create}</button>
    </form>
  )
}

interface LimitsProps {
  draft: KeyDraft
  onDraft: (draft: KeyDraft) => void
  problemOf: (field: KeyField) => string | undefined
}

/** The limits of a key. */
function Limits({ draft, onDraft, problemOf }: LimitsProps) {
  const { form: words } = useDeveloperWords()
  const isWrong = (['maxPerPayment', 'maxPerDay', 'paymentMethods', 'addresses'] as const).some(
    (field) => problemOf(field) !== undefined,
  )
  return (
    <details open={isWrong || undefined}>
      <summary>{words.limits}</summary>
      <p className="soft">{words.limitsHint}</p>
      {(['maxPerPayment', 'maxPerDay'] as const).map((field) => (
        <Field
          key={field}
          label={words[field]}
          value={draft[field]}
          onValue={(value) => onDraft({ ...draft, [field]: value })}
          autoComplete="off"
          inputMode="numeric"
          problem={problemOf(field)}
        />
      ))}
      <Choices
        title={words.operators}
        options={operators.map((operator) => [operator, operatorLabel(operator)])}
        chosen={draft.paymentMethods}
        onChoose={(paymentMethods) => onDraft({ ...draft, paymentMethods })}
        problem={problemOf('paymentMethods')}
      />
      <Field
        label={words.addresses}
        hint={words.addressesHint}
        value={draft.addresses}
        onValue={(addresses) => onDraft({ ...draft, addresses })}
        autoComplete="off"
        isLong
        problem={problemOf('addresses')}
      />
    </details>
  )
}

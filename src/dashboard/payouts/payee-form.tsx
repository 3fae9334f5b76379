import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { BeneficiaryCategory, PayeeFragment, PayoutMethod } from '../operations.ts'
import { Field } from '../parts/field.tsx'
import { SelectField } from '../parts/select-field.tsx'
import type { Refused } from '../use-save.ts'
import { OperatorField } from './payout-form.tsx'
import { usePayoutWords } from './words.ts'

/** The fields of a saved person. */
export type PayeeInput = Pick<PayeeFragment, 'name' | 'account' | 'paymentMethod' | 'category'>

export const payeeFields = ['name', 'account', 'paymentMethod', 'category'] as const
export type PayeeField = (typeof payeeFields)[number]

/** The fields as a person types them: the operator is none until it is chosen. */
export type PayeeDraft = Omit<PayeeInput, 'paymentMethod'> & { paymentMethod: PayoutMethod | '' }

interface PayeeFormProps {
  start: PayeeDraft
  isSending: boolean
  refused: Refused<PayeeField> | null
  onSend: (input: PayeeInput) => void
}

/** The form of a saved person. */
export function PayeeForm({ start, isSending, refused, onSend }: PayeeFormProps) {
  const { people: words, form } = usePayoutWords()
  const [draft, setDraft] = useState(start)
  const [wrong, setWrong] = useState<PayeeField | null>(null)
  const given = wrong ?? (typeof refused === 'string' ? refused : null)
  const problemOf = (field: PayeeField) => (given === field ? words.wrong[field] : undefined)
  const submit = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (isSending) return
    const { paymentMethod } = draft
    const field = draft.name.trim() === '' ? 'name' : draft.account.trim() === '' ? 'account' : null
    setWrong(field ?? (paymentMethod === '' ? 'paymentMethod' : null))
    if (field === null && paymentMethod !== '') onSend({ ...draft, name: draft.name.trim(), paymentMethod })
  }
  return (
    <form onSubmit={submit}>
      <Field
        label={words.name}
        value={draft.name}
        onValue={(name) => setDraft({ ...draft, name })}
        autoComplete="off"
        maxLength={200}
        problem={problemOf('name')}
      />
      <Field
        label={form.phone}
        hint={form.phoneHint}
        value={draft.account}
        onValue={(account) => setDraft({ ...draft, account })}
        autoComplete="off"
        inputMode="numeric"
        problem={problemOf('account')}
      />
      <OperatorField
        value={draft.paymentMethod}
        onValue={(value) => setDraft({ ...draft, paymentMethod: value as PayeeDraft['paymentMethod'] })}
        problem={problemOf('paymentMethod')}
      />
      <SelectField
        label={words.category}
        value={draft.category}
        onValue={(value) => setDraft({ ...draft, category: value as BeneficiaryCategory })}
        problem={problemOf('category')}
      >
        {Object.entries(words.categories).map(([category, name]) => (
          <option key={category} value={category}>
            {name}
          </option>
        ))}
      </SelectField>
      {refused !== null && typeof refused !== 'string' && (
        <p className="problem" role="alert">
          {refused.text}
        </p>
      )}
      <button aria-disabled={isSending}>{words.save}</button>
    </form>
  )
}

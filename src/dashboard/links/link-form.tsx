import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { dayOf, dayStart, readAmount } from '../format.ts'
import { useMe } from '../me.ts'
import { Field } from '../parts/field.tsx'
import type { Refused } from '../use-save.ts'
import { useLinkWords } from './words.ts'

/** The fields of a link as a person types them; an empty text is none. */
export interface LinkDraft {
  title: string
  amount: string
  description: string
  usageLimit: string
  /** The last day on which the link accepts payments, such as `2026-11-30`. */
  expiresOn: string
}

/** The fields of a link as the service takes them. */
export interface LinkInput {
  title: string
  amount: number | null
  description: string | null
  usageLimit: number | null
  expiresAt: string | null
}

type LinkField = keyof LinkInput

/** The field of the form behind each field of a link. */
const draftNames: Readonly<Record<LinkField, keyof LinkDraft>> = {
  title: 'title',
  amount: 'amount',
  description: 'description',
  usageLimit: 'usageLimit',
  expiresAt: 'expiresOn',
}

export const linkFields = Object.keys(draftNames) as LinkField[]

const dayMs = 86_400_000

/** Returns the moment at which the day after a day begins: a link is open to the end of its last day. */
function endOf(day: string, timeZone: string): string {
  return dayStart(dayOf(new Date(Date.parse(`${day}T12:00:00Z`) + dayMs), 'UTC'), timeZone)
}

/**
 * Reads the fields that the person changed: a link may have changed in another window while the form was
 * open, and the last moment of a link may be one that the form cannot show.
 * @returns the input, or the first field that is wrong
 */
function inputOf(draft: LinkDraft, start: LinkDraft, timeZone: string): Partial<LinkInput> | LinkField {
  const input = wholeInputOf(draft, timeZone)
  if (typeof input === 'string') return input
  const isChanged = (field: string) => {
    const name = draftNames[field as LinkField]
    return draft[name] !== start[name]
  }
  return Object.fromEntries(Object.entries(input).filter(([field]) => isChanged(field)))
}

function wholeInputOf(draft: LinkDraft, timeZone: string): LinkInput | LinkField {
  const title = draft.title.trim()
  if (title === '') return 'title'
  const amount = draft.amount.trim() === '' ? null : readAmount(draft.amount)
  if (draft.amount.trim() !== '' && amount === null) return 'amount'
  const limit = draft.usageLimit.trim()
  if (limit !== '' && !/^[1-9]\d{0,8}$/.test(limit)) return 'usageLimit'
  // A date field takes a year of six digits.
  if (draft.expiresOn.length > 10) return 'expiresAt'
  return {
    title,
    amount,
    description: draft.description.trim() === '' ? null : draft.description.trim(),
    usageLimit: limit === '' ? null : Number(limit),
    expiresAt: draft.expiresOn === '' ? null : endOf(draft.expiresOn, timeZone),
  }
}

interface LinkFormProps {
  /** The fields as they are when the form opens; later ones are ignored. */
  start: LinkDraft
  /** The words of the button. */
  send: string
  isSending: boolean
  /** The field that the service refused, or the problem in words. */
  refused: Refused<LinkField> | null
  onSend: (input: Partial<LinkInput>) => void
}

/** The form of a payment link. */
export function LinkForm({ start, send, isSending, refused, onSend }: LinkFormProps) {
  const { form: words } = useLinkWords()
  const { timeZone } = useMe()
  const [first] = useState(start)
  const [draft, setDraft] = useState(start)
  const [wrong, setWrong] = useState<LinkField | null>(null)
  const given = wrong ?? (typeof refused === 'string' ? refused : null)
  const problemOf = (field: LinkField) => (given === field ? words.wrong[field] : undefined)
  const fieldOf = (name: keyof LinkDraft) => ({
    value: draft[name],
    onValue: (value: string) => setDraft({ ...draft, [name]: value }),
    autoComplete: 'off',
  })
  const submit = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (isSending) return
    const input = inputOf(draft, first, timeZone)
    setWrong(typeof input === 'string' ? input : null)
    if (typeof input !== 'string') onSend(input)
  }
  return (
    <form onSubmit={submit}>
      <Field
        label={words.title}
        hint={words.titleHint}
        maxLength={200}
        problem={problemOf('title')}
        {...fieldOf('title')}
      />
      <Field
        label={words.amount}
        hint={words.amountHint}
        inputMode="numeric"
        problem={problemOf('amount')}
        {...fieldOf('amount')}
      />
      <Field
        label={words.description}
        isLong
        maxLength={1_000}
        problem={problemOf('description')}
        {...fieldOf('description')}
      />
      <Field
        label={words.usageLimit}
        hint={words.usageLimitHint}
        inputMode="numeric"
        problem={problemOf('usageLimit')}
        {...fieldOf('usageLimit')}
      />
      <Field label={words.expiresOn} type="date" problem={problemOf('expiresAt')} {...fieldOf('expiresOn')} />
      {refused !== null && typeof refused !== 'string' && (
        <p className="problem" role="alert">
          {refused.text}
        </p>
      )}
      <button aria-disabled={isSending}>{send}</button>
    </form>
  )
}

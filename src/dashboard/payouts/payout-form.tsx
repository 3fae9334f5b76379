import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { formatPhone, formatXof, momentOf, readAmount } from '../format.ts'
import { useLanguage } from '../language.ts'
import { useMe } from '../me.ts'
import type { PayeeFragment, PaymentMethod } from '../operations.ts'
import { operators } from '../payment-filter.ts'
import { Field } from '../parts/field.tsx'
import { SelectField } from '../parts/select-field.tsx'
import type { PayoutField, PayoutOrder } from './use-payout.ts'
import { usePayoutWords } from './words.ts'
import { operatorLabel } from '../operator-label.ts'

/** The fields of a payout as a person types them. */
export interface PayoutDraft {
  phone: string
  operator: string
  amount: string
  isLater: boolean
  /** The day and the time of a payout that leaves later, such as `2026-11-30` and `08:00`. */
  day: string
  time: string
  reference: string
}

/** The number of Mali in E.164 form; null where the text is no such number. */
function readPhone(typed: string): string | null {
  const digits = typed.replaceAll(/[\s.-]/g, '')
  const [, local] = /^(?:\+223|00223)?(\d{8})$/.exec(digits) ?? []
  return local === undefined ? null : `+223${local}`
}

const amountMin = 1_000
const amountMax = 100_000_000
const dayMs = 86_400_000
/** The days ahead for which the service takes a payout. */
const daysAheadMax = 366

/** Reads the moment of a payout: null for now. @returns undefined where it is no moment to come */
function readMoment({ isLater, day, time }: PayoutDraft, timeZone: string): string | null | undefined {
  if (!isLater) return null
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day) || !/^\d{2}:\d{2}$/.test(time)) return undefined
  const moment = momentOf(day, time, timeZone)
  const ahead = Date.parse(moment) - Date.now()
  return ahead > 0 && ahead < daysAheadMax * dayMs ? moment : undefined
}

/** Reads the draft. @returns the payout, or the first field that is wrong */
function orderOf(
  draft: PayoutDraft,
  payee: PayeeFragment | null,
  timeZone: string,
): PayoutOrder | PayoutField {
  const phone = payee ? payee.account : readPhone(draft.phone)
  if (phone === null) return 'phone'
  if (!payee && draft.operator === '') return 'operator'
  const amount = readAmount(draft.amount)
  if (amount === null || amount < amountMin || amount > amountMax) return 'amount'
  const scheduledAt = readMoment(draft, timeZone)
  if (scheduledAt === undefined) return 'moment'
  const reference = draft.reference.trim()
  const paymentMethod = draft.operator as PaymentMethod
  return {
    input: {
      amount,
      // The service refuses a saved person whose account is not the one that the page shows.
      ...(payee
        ? { beneficiaryId: payee.id, destinationPhone: phone, paymentMethod: payee.paymentMethod }
        : { destination: { mobile: { phone, paymentMethod } } }),
      ...(scheduledAt !== null && { scheduledAt }),
      ...(reference !== '' && { reference }),
    },
    payee: { name: payee?.name ?? null, phone, paymentMethod: payee?.paymentMethod ?? paymentMethod },
  }
}

interface PayoutFormProps {
  draft: PayoutDraft
  onDraft: (draft: PayoutDraft) => void
  /** The saved person to pay; null for a number that is typed. */
  payee: PayeeFragment | null
  /** The money that is there, in whole francs; null where it is not known. */
  available: number | null
  refused: PayoutField | null
  problem: string | undefined
  /** Whether the person comes back from the second look. */
  isBack: boolean
  onCheck: (order: PayoutOrder) => void
}

/** The form of a payout. */
export function PayoutForm(props: PayoutFormProps) {
  const { draft, onDraft, payee, available, refused, problem, isBack, onCheck } = props
  const { form: words } = usePayoutWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const [wrong, setWrong] = useState(refused)
  const form = useFocusBack(isBack)
  const problemOf = (field: PayoutField) => (wrong === field ? words.wrong[field] : undefined)
  const fieldOf = (name: 'phone' | 'amount' | 'day' | 'time' | 'reference') => ({
    value: draft[name],
    onValue: (value: string) => onDraft({ ...draft, [name]: value }),
    autoComplete: 'off',
  })
  const submit = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const order = orderOf(draft, payee, timeZone)
    setWrong(typeof order === 'string' ? order : null)
    if (typeof order !== 'string') onCheck(order)
  }
  return (
    <form ref={form} onSubmit={submit}>
      <PayeeChoice payee={payee} problem={problemOf('payee')} />
      {!payee && (
        <NumberFields phone={fieldOf('phone')} draft={draft} onDraft={onDraft} problemOf={problemOf} />
      )}
      <Field
        label={words.amount}
        hint={words.amountHint(available === null ? null : formatXof(available, language))}
        inputMode="numeric"
        problem={problemOf('amount')}
        {...fieldOf('amount')}
      />
      <When draft={draft} onDraft={onDraft} problem={problemOf('moment')}>
        <Field label={words.day} type="date" problem={problemOf('moment')} {...fieldOf('day')} />
        <Field label={words.time} type="time" {...fieldOf('time')} />
      </When>
      <Field
        label={words.reference}
        hint={words.referenceHint}
        maxLength={100}
        problem={problemOf('reference')}
        {...fieldOf('reference')}
      />
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <button>{words.next}</button>
    </form>
  )
}

/** Gives the focus to the field that is wrong, else to the first one: the button that had it is gone. */
function useFocusBack(isBack: boolean) {
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    const wrong = form.current?.querySelector<HTMLElement>('[aria-invalid]')
    const field = wrong ?? form.current?.querySelector('input')
    if (isBack) field?.focus()
  }, [])
  return form
}

/** The person to pay, or the way to choose one. */
function PayeeChoice({ payee, problem }: { payee: PayeeFragment | null; problem: string | undefined }) {
  const { form: words } = usePayoutWords()
  return (
    <>
      {payee && (
        <>
          <h2>
            <bdi>{payee.name}</bdi>
          </h2>
          <p className="number">
            {formatPhone(payee.account)} <span className="soft">· {operatorLabel(payee.paymentMethod)}</span>
          </p>
        </>
      )}
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <p className="bar">
        <Link href="/payouts/people">{payee ? words.other : words.choose}</Link>
        {payee && <Link href="/payouts/new">{words.toNumber}</Link>}
      </p>
    </>
  )
}

interface NumberFieldsProps extends Pick<PayoutFormProps, 'draft' | 'onDraft'> {
  phone: { value: string; onValue: (value: string) => void; autoComplete: string }
  problemOf: (field: PayoutField) => string | undefined
}

/** The number that is paid, and its operator. */
function NumberFields({ phone, draft, onDraft, problemOf }: NumberFieldsProps) {
  const { form: words } = usePayoutWords()
  return (
    <>
      <Field
        label={words.phone}
        hint={words.phoneHint}
        inputMode="numeric"
        problem={problemOf('phone')}
        {...phone}
      />
      <OperatorField
        value={draft.operator}
        onValue={(operator) => onDraft({ ...draft, operator })}
        problem={problemOf('operator')}
      />
    </>
  )
}

interface OperatorFieldProps {
  value: string
  onValue: (value: string) => void
  problem: string | undefined
}

/** The choice of the operator of a number. */
export function OperatorField({ value, onValue, problem }: OperatorFieldProps) {
  const { form: words } = usePayoutWords()
  return (
    <SelectField label={words.operator} value={value} onValue={onValue} problem={problem}>
      <option value="">{words.chooseOperator}</option>
      {operators.map((operator) => (
        <option key={operator} value={operator}>
          {operatorLabel(operator)}
        </option>
      ))}
    </SelectField>
  )
}

interface WhenProps extends Pick<PayoutFormProps, 'draft' | 'onDraft'> {
  problem: string | undefined
  /** The fields of a payout that leaves later. */
  children: JSX.Element[]
}

/** Now, or a day and a time. */
function When({ draft, onDraft, children }: WhenProps) {
  const { form: words } = usePayoutWords()
  const choice = (isLater: boolean, name: string) => (
    <label className="check">
      <input
        type="radio"
        name="when"
        checked={draft.isLater === isLater}
        onChange={() => onDraft({ ...draft, isLater })}
      />
      {name}
    </label>
  )
  return (
    <fieldset>
      <legend>{words.when}</legend>
      {choice(false, words.now)}
      {choice(true, words.later)}
      {draft.isLater && <div className="moment">{children}</div>}
    </fieldset>
  )
}

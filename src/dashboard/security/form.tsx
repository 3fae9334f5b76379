import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { useMe } from '../me.ts'

/** Names the account to the password manager of the browser; it is not shown. */
export function AccountName() {
  const { email } = useMe()
  return <input type="email" autoComplete="username" value={email} readOnly hidden />
}

/**
 * Moves the focus to the first empty field. A try without a password or a code would count as a failed one.
 * @returns false where every field has a text
 */
export function focusEmpty(form: HTMLFormElement): boolean {
  const empty = [...form.querySelectorAll<HTMLInputElement>('.field input')].find(({ value }) => value === '')
  empty?.focus()
  return empty !== undefined
}

interface StepFormProps {
  /** The words of the button. */
  button: string
  isSending: boolean
  /** Sends the fields. @returns the problem in words; undefined where the step is done */
  onSend: () => Promise<string | undefined>
  /** Called after a problem: the service may know more than the page shows. */
  onProblem: () => void
  children: ComponentChildren
}

/** The form of one step, with the problem of its last try. */
export function StepForm({ button, isSending, onSend, onProblem, children }: StepFormProps) {
  const [problem, setProblem] = useState<string>()
  const send = async () => {
    // A screen reader says the same problem again only where it was gone meanwhile.
    setProblem(undefined)
    const text = await onSend()
    if (text === undefined) return
    setProblem(text)
    onProblem()
  }
  const submit = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (!isSending && !focusEmpty(event.currentTarget)) void send()
  }
  return (
    <form onSubmit={submit} noValidate>
      <AccountName />
      {children}
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <button aria-disabled={isSending}>{button}</button>
    </form>
  )
}

import { useMutation } from '@urql/preact'
import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { useWords } from '../language.ts'
import { changePasswordMutation } from '../operations.ts'
import { PasswordField } from '../parts/field.tsx'
import { problemText, refusalOf } from '../refusals.ts'
import { AccountName, focusEmpty } from './form.tsx'
import { useSecurityWords } from './words.ts'

/**
 * Changes the person's password.
 * @param props.onChanged called after the change, which ends the other sessions
 */
export function Password({ onChanged }: { onChanged: () => void }) {
  const { password: words } = useSecurityWords()
  const [isOpen, open] = useState(false)
  const [isSaved, setSaved] = useState(false)
  const summary = useRef<HTMLElement>(null)
  return (
    <section className="card">
      <h2>{words.title}</h2>
      <p role="status">{isSaved ? words.saved : ''}</p>
      <details
        open={isOpen}
        onToggle={({ currentTarget }) => {
          open(currentTarget.open)
          if (currentTarget.open) setSaved(false)
        }}
      >
        <summary ref={summary}>{words.open}</summary>
        {isOpen && (
          <PasswordForm
            onSaved={() => {
              setSaved(true)
              open(false)
              summary.current?.focus()
              onChanged()
            }}
          />
        )}
      </details>
    </section>
  )
}

type Problem = { field: 'current' | 'password'; text: string } | { field: null; text: string }

function PasswordForm({ onSaved }: { onSaved: () => void }) {
  const { password: words } = useSecurityWords()
  const common = useWords()
  const [current, setCurrent] = useState('')
  const [password, setPassword] = useState('')
  const [problem, setProblem] = useState<Problem>()
  // An answer was lost: the password may have changed already.
  const isInDoubt = useRef(false)
  const [{ fetching }, change] = useMutation(changePasswordMutation)
  const send = async () => {
    const { data, error } = await change({ current, password })
    const result = data?.changePassword
    const text = problemText(error, result, common)
    if (text === undefined) return onSaved()
    const code = refusalOf(result)?.code
    const isLost = error?.networkError !== undefined
    if (code === 'CREDENTIALS_REJECTED') {
      setProblem({ field: 'current', text: isInDoubt.current ? words.wrongAfterLost : words.wrongCurrent })
    } else if (code === 'INVALID_INPUT') setProblem({ field: 'password', text: words.tooWeak })
    else setProblem({ field: null, text: isLost ? words.lost : text })
    isInDoubt.current ||= isLost
  }
  const submit = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (fetching || focusEmpty(event.currentTarget)) return
    setProblem(undefined)
    void send()
  }
  const problemOf = (field: 'current' | 'password') => (problem?.field === field ? problem.text : undefined)
  return (
    <form onSubmit={submit} noValidate>
      <AccountName />
      <PasswordField
        label={words.current}
        value={current}
        onValue={setCurrent}
        autoComplete="current-password"
        problem={problemOf('current')}
      />
      <PasswordField
        label={words.next}
        hint={words.hint}
        value={password}
        onValue={setPassword}
        autoComplete="new-password"
        maxLength={128}
        problem={problemOf('password')}
      />
      {problem?.field === null && (
        <p className="problem" role="alert">
          {problem.text}
        </p>
      )}
      <button aria-disabled={fetching}>{words.send}</button>
    </form>
  )
}

import { useMutation } from '@urql/preact'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { useWords } from '../language.ts'
import { requestPasswordResetMutation } from '../operations.ts'
import { Field } from '../parts/field.tsx'
import { problemText, refusalOf } from '../refusals.ts'

/** Sends a letter with which a person chooses a new password. The answer never says who has an account. */
export function ForgottenScreen() {
  const words = useWords()
  const [email, setEmail] = useState('')
  const [problem, setProblem] = useState<string>()
  const [isSent, setSent] = useState(false)
  const [{ fetching }, request] = useMutation(requestPasswordResetMutation)

  async function send(event: JSX.TargetedSubmitEvent<HTMLFormElement>) {
    event.preventDefault()
    if (fetching) return
    const { data, error } = await request({ input: { email: email.trim() } })
    const refusal = refusalOf(data?.requestPasswordReset)
    const isWrong = refusal?.code === 'INVALID_INPUT'
    const text = problemText(error, data?.requestPasswordReset, words)
    setProblem(isWrong ? words.forgotten.wrongEmail : text)
    setSent(text === undefined)
  }

  return (
    <section className="narrow card">
      <h1>{words.forgotten.title}</h1>
      {isSent ? (
        <p role="status">{words.forgotten.sent}</p>
      ) : (
        <form onSubmit={(event) => void send(event)} noValidate>
          <p>{words.forgotten.lead}</p>
          <Field
            label={words.signIn.email}
            type="email"
            inputMode="email"
            autoComplete="username"
            value={email}
            onValue={setEmail}
            problem={problem}
            isFocused
          />
          <button aria-disabled={fetching}>{words.forgotten.send}</button>
        </form>
      )}
      <p>
        <Link href="/">{words.forgotten.back}</Link>
      </p>
    </section>
  )
}

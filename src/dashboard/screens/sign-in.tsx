import { useMutation } from '@urql/preact'
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { useWords } from '../language.ts'
import { type SignInMutation, signInMutation } from '../operations.ts'
import { Field, PasswordField } from '../parts/field.tsx'
import { problemText, refusalOf } from '../refusals.ts'
import type { Words } from '../words/fr.ts'

/** The facts that the sign-in knows before the person types. */
export interface SignInStart {
  /** Why the person has to sign in (again). */
  notice?: string
  email?: string
  /** The account to sign in to, where the person is in several teams. */
  merchantId?: number
}

/** The texts that a person types. */
interface Typed {
  email: string
  password: string
  account: string
  code: string
}

/** The problems of the last try, at their fields. */
interface Problems {
  account?: string | undefined
  /** The problem beside the last field of the step: the password, or the code. */
  last?: string | undefined
}

interface StepProps {
  typed: Typed
  onType: (typed: Partial<Typed>) => void
  problems: Problems
}

/**
 * Signs a person in: e-mail address and password, then the code of the second factor where there is one. The
 * page then loads anew, with the cookie of the session.
 */
export function SignInScreen({ start }: { start: SignInStart }) {
  const words = useWords()
  const account = start.merchantId === undefined ? '' : String(start.merchantId)
  const [typed, setTyped] = useState<Typed>({ email: start.email ?? '', password: '', account, code: '' })
  const [asksCode, askCode] = useState(false)
  const [problems, setProblems] = useState<Problems>({})
  const [{ fetching }, signIn] = useMutation(signInMutation)
  const onType = (more: Partial<Typed>) => setTyped((before) => ({ ...before, ...more }))

  async function send() {
    if (fetching) return
    setProblems({})
    const { data, error } = await signIn({ input: inputOf(typed, asksCode) })
    if (refusalOf(data?.signIn)?.code === 'SECOND_FACTOR_REQUIRED') return askCode(true)
    const text = problemText(error, data?.signIn, words)
    if (text === undefined) location.reload()
    else setProblems(problemsOf(data?.signIn ?? null, text, asksCode, words))
  }

  const Step = asksCode ? CodeStep : CredentialsStep
  return (
    <section className="narrow card">
      <h1>{words.signIn.title}</h1>
      {start.notice && <p role="status">{start.notice}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
        noValidate
      >
        <Step typed={typed} onType={onType} problems={problems} />
        <button aria-disabled={fetching}>{asksCode ? words.signIn.confirm : words.signIn.send}</button>
      </form>
      <p>
        <Link href="/forgotten">{words.signIn.forgotten}</Link>
      </p>
    </section>
  )
}

function CredentialsStep({ typed, onType, problems }: StepProps) {
  const words = useWords()
  return (
    <>
      <Field
        label={words.signIn.email}
        type="email"
        inputMode="email"
        autoComplete="username"
        value={typed.email}
        onValue={(email) => onType({ email })}
        isFocused={typed.email === ''}
      />
      <PasswordField
        label={words.signIn.password}
        autoComplete="current-password"
        value={typed.password}
        onValue={(password) => onType({ password })}
        problem={problems.last}
        isFocused={typed.email !== ''}
      />
      <details open={typed.account !== '' || problems.last !== undefined}>
        <summary>{words.signIn.severalAccounts}</summary>
        <Field
          label={words.signIn.account}
          hint={words.signIn.accountHint}
          inputMode="numeric"
          autoComplete="off"
          value={typed.account}
          onValue={(value) => onType({ account: value.replaceAll(/\D/g, '') })}
          problem={problems.account}
          maxLength={9}
        />
      </details>
    </>
  )
}

function CodeStep({ typed, onType, problems }: StepProps) {
  const words = useWords()
  return (
    <Field
      label={words.signIn.code}
      hint={words.signIn.codeHint}
      autoComplete="one-time-code"
      value={typed.code}
      onValue={(code) => onType({ code })}
      problem={problems.last}
      maxLength={32}
      isFocused
    />
  )
}

function inputOf({ email, password, account, code }: Typed, asksCode: boolean) {
  const merchantId = account === '' ? null : Number(account)
  return { email: email.trim(), password, merchantId, code: asksCode ? code : null, cookie: true }
}

/** Sorts the refusal of a sign-in to the fields. @param text the refusal in its usual words */
function problemsOf(
  result: SignInMutation['signIn'],
  text: string,
  asksCode: boolean,
  words: Words,
): Problems {
  const code = refusalOf(result)?.code
  if (code === 'CREDENTIALS_REJECTED') return { last: asksCode ? words.signIn.wrongCode : words.signIn.wrong }
  if (result?.__typename !== 'InvalidInputError') return { last: text }
  const fields = result.problems.map(({ field }) => field)
  // The page was opened at another address than that of the service, which keeps no session there.
  if (fields.includes('cookie')) return { last: words.signIn.elsewhere }
  if (fields.includes('merchantId')) return { account: words.signIn.wrongAccount }
  return { last: words.signIn.incomplete }
}

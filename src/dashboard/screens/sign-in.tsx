import { useMutation } from '@urql/preact'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { useWords } from '../language.ts'
import { type SignInMutation, signInMutation } from '../operations.ts'
import { Field, PasswordField } from '../parts/field.tsx'
import { type ShownRefusal, refusalOf, refusalText } from '../refusals.ts'

/** The facts that the sign-in knows before the person types. */
export interface SignInStart {
  /** Why the person has to sign in (again). */
  notice?: string
  email?: string
  /** The account to sign in to, where the person is in several teams. */
  merchantId?: number
}

/**
 * Signs a person in: e-mail address and password, then the code of the second factor where there is one. The
 * page then loads anew, with the cookie of the session.
 */
export function SignInScreen({ start }: { start: SignInStart }) {
  const words = useWords()
  const [email, setEmail] = useState(start.email ?? '')
  const [password, setPassword] = useState('')
  const [account, setAccount] = useState(start.merchantId === undefined ? '' : String(start.merchantId))
  const [code, setCode] = useState('')
  const [asksCode, askCode] = useState(false)
  const [refusal, setRefusal] = useState<ShownRefusal | null>(null)
  const [{ fetching }, signIn] = useMutation(signInMutation)

  async function send(event: JSX.TargetedSubmitEvent<HTMLFormElement>) {
    event.preventDefault()
    if (fetching) return
    setRefusal(null)
    const merchantId = account.trim() === '' ? null : Number(account)
    const input = { email: email.trim(), password, merchantId, code: asksCode ? code : null, cookie: true }
    const { data, error } = await signIn({ input })
    const refused = refusalOf(data?.signIn)
    if (error) setRefusal({ code: 'NETWORK', message: words.failure.network, retryAfter: null })
    else if (refused?.code === 'SECOND_FACTOR_REQUIRED') askCode(true)
    else if (isElsewhere(data))
      setRefusal({ code: 'ELSEWHERE', message: words.signIn.elsewhere, retryAfter: null })
    else if (refused) setRefusal(refused)
    else location.reload()
  }

  return (
    <section className="narrow card">
      <h1>{words.signIn.title}</h1>
      {start.notice && <p role="status">{start.notice}</p>}
      <form onSubmit={(event) => void send(event)} noValidate>
        {asksCode ? (
          <CodeStep code={code} onCode={setCode} problem={problemOf(refusal, words, true)} />
        ) : (
          <>
            <Field
              label={words.signIn.email}
              type="email"
              inputMode="email"
              autoComplete="username"
              value={email}
              onValue={setEmail}
              isFocused={email === ''}
            />
            <PasswordField
              label={words.signIn.password}
              autoComplete="current-password"
              value={password}
              onValue={setPassword}
              problem={problemOf(refusal, words, false)}
            />
            <details open={account !== ''}>
              <summary>{words.signIn.severalAccounts}</summary>
              <Field
                label={words.signIn.account}
                hint={words.signIn.accountHint}
                inputMode="numeric"
                autoComplete="off"
                value={account}
                onValue={(value) => setAccount(value.replaceAll(/\D/g, ''))}
                maxLength={9}
              />
            </details>
          </>
        )}
        <button aria-disabled={fetching}>{asksCode ? words.signIn.confirm : words.signIn.send}</button>
      </form>
      <p>
        <Link href="/forgotten">{words.signIn.forgotten}</Link>
      </p>
    </section>
  )
}

function CodeStep(props: { code: string; onCode: (code: string) => void; problem: string | undefined }) {
  const words = useWords()
  return (
    <Field
      label={words.signIn.code}
      hint={words.signIn.codeHint}
      autoComplete="one-time-code"
      value={props.code}
      onValue={props.onCode}
      problem={props.problem}
      maxLength={32}
      isFocused
    />
  )
}

/** Whether the page has another address than the service, which keeps no session there. */
function isElsewhere(data: SignInMutation | undefined): boolean {
  const result = data?.signIn
  return result?.__typename === 'InvalidInputError' && result.problems.some(({ field }) => field === 'cookie')
}

/** The problem beside the last field of the step. */
function problemOf(
  refusal: ShownRefusal | null,
  words: ReturnType<typeof useWords>,
  asksCode: boolean,
): string | undefined {
  if (!refusal) return undefined
  if (refusal.code === 'CREDENTIALS_REJECTED') return asksCode ? words.signIn.wrongCode : words.signIn.wrong
  if (refusal.code === 'INVALID_INPUT') return words.signIn.incomplete
  return refusalText(refusal, words)
}

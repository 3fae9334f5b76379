import { useMutation } from '@urql/preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { onceUnder } from '../client.ts'
import { useWords } from '../language.ts'
import { confirmTotpMutation, disableTotpMutation, startTotpMutation } from '../operations.ts'
import { Field, PasswordField } from '../parts/field.tsx'
import { codeOf, problemText, refusalOf } from '../refusals.ts'
import { newKey } from '../sent-money.ts'
import { StepForm } from './form.tsx'
import { QrCode } from './qr-code.tsx'
import { useSecurityWords } from './words.ts'

// The steps by which a person switches the second factor on, and off.

interface StepProps<Result> {
  onDone: (result: Result) => void
  /** Called after a problem: the second factor may have been switched meanwhile. */
  onProblem: () => void
}

/** The key of an authenticator application. */
interface Setup {
  secret: string
  uri: string
}

/** Asks for the password before the second factor is set up. */
export function StartForm({ onDone, onProblem }: StepProps<Setup>) {
  const { factor: words } = useSecurityWords()
  const common = useWords()
  const [password, setPassword] = useState('')
  const [{ fetching }, start] = useMutation(startTotpMutation)
  const send = async () => {
    const { data, error } = await start({ password })
    const result = data?.startTotp
    if (result?.__typename === 'TotpSetup') {
      onDone(result)
      return undefined
    }
    const code = refusalOf(result)?.code
    if (code === 'CREDENTIALS_REJECTED' || code === 'INVALID_INPUT') return words.wrongPassword
    return code === 'STATE_CONFLICT' ? words.changed : problemText(error, result, common)
  }
  return (
    <StepForm button={words.next} isSending={fetching} onSend={send} onProblem={onProblem}>
      <PasswordField
        label={words.password}
        value={password}
        onValue={setPassword}
        autoComplete="current-password"
        isFocused
      />
    </StepForm>
  )
}

/** Shows the key as a QR code, and asks for the first code. The result is the recovery codes. */
export function ConfirmForm({ secret, uri, onDone, onProblem }: Setup & StepProps<readonly string[]>) {
  const { factor: words } = useSecurityWords()
  const common = useWords()
  const [code, setCode] = useState('')
  const [{ fetching }, confirm] = useMutation(confirmTotpMutation)
  // The person reads the QR code first: the field of the code, and the keys of a telephone, would hide it.
  const first = useRef<HTMLParagraphElement>(null)
  useEffect(() => first.current?.focus(), [])
  // A code whose answer was lost may have switched it on: under the same key the same answer comes again.
  const lost = useRef<{ code: string; key: string }>()
  const confirmOnce = async (sent: { code: string; key: string }) => {
    const answer = await confirm({ code: sent.code }, onceUnder(sent.key))
    const isOpen = answer.error?.networkError || codeOf(answer.error) === 'IDEMPOTENCY_KEY_BUSY'
    lost.current = isOpen ? sent : undefined
    return answer
  }
  const send = async () => {
    const typed = { code: code.replaceAll(/\s/g, ''), key: newKey() }
    const earlier = lost.current ?? typed
    let answer = await confirmOnce(earlier)
    const isRefused = refusalOf(answer.data?.confirmTotp) !== null
    if (isRefused && earlier.code !== typed.code) answer = await confirmOnce(typed)
    const { data, error } = answer
    const result = data?.confirmTotp
    if (result?.__typename === 'RecoveryCodes') {
      onDone(result.codes)
      return undefined
    }
    const refused = refusalOf(result)?.code
    if (refused === 'INVALID_INPUT') return words.wrongCode
    return refused === 'STATE_CONFLICT' ? words.changed : problemText(error, result, common)
  }
  return (
    <>
      <p ref={first} tabIndex={-1}>
        {words.scan}
      </p>
      <QrCode text={uri} name={words.qr} />
      <p>
        <a href={uri}>{words.open}</a>
      </p>
      <p className="soft">
        {words.secret} <code>{secret.replaceAll(/(.{4})(?=.)/g, '$1 ')}</code>
      </p>
      <StepForm
        button={words.confirm}
        isSending={fetching}
        onSend={send}
        onProblem={() => {
          // The codes of a lost answer can still come.
          if (!lost.current) onProblem()
        }}
      >
        <Field
          label={words.code}
          value={code}
          onValue={setCode}
          autoComplete="one-time-code"
          inputMode="numeric"
          maxLength={9}
        />
      </StepForm>
    </>
  )
}

/** Switches the second factor off, with the password and a code. */
export function StopForm({ onDone, onProblem }: StepProps<void>) {
  const { factor: words } = useSecurityWords()
  const common = useWords()
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const [{ fetching }, disable] = useMutation(disableTotpMutation)
  const send = async () => {
    const { data, error } = await disable({ password, code: code.trim() })
    const result = data?.disableTotp
    const text = problemText(error, result, common)
    if (text === undefined) {
      onDone()
      return undefined
    }
    const refused = refusalOf(result)?.code
    if (refused === 'CREDENTIALS_REJECTED' || refused === 'INVALID_INPUT') return words.wrongEither
    return refused === 'STATE_CONFLICT' ? words.changed : text
  }
  return (
    <StepForm button={words.stop} isSending={fetching} onSend={send} onProblem={onProblem}>
      <PasswordField
        label={words.password}
        value={password}
        onValue={setPassword}
        autoComplete="current-password"
        isFocused
      />
      <Field
        label={words.stopCode}
        value={code}
        onValue={setCode}
        autoComplete="one-time-code"
        maxLength={32}
      />
    </StepForm>
  )
}

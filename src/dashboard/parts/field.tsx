import type { JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { useWords } from '../language.ts'

interface FieldProps {
  label: string
  value: string
  onValue: (value: string) => void
  type?: 'text' | 'email' | 'password' | 'date' | 'time'
  autoComplete: string
  inputMode?: 'text' | 'email' | 'numeric' | 'tel' | 'url'
  hint?: string
  problem?: string | undefined
  maxLength?: number
  isFocused?: boolean
  /** Whether the field takes several lines. */
  isLong?: boolean
}

/** A field of a form with its name, an explanation, and the problem that it has. */
export function Field(props: FieldProps) {
  const { label, value, onValue, type = 'text', autoComplete, inputMode, hint, problem, maxLength } = props
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  // Browsers follow `autofocus` only while the page loads.
  useEffect(() => {
    if (props.isFocused) input.current?.focus()
  }, [])
  const describedBy = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(' ')
  const common = {
    id,
    value,
    autoComplete,
    maxLength,
    'aria-invalid': problem === undefined ? undefined : ('true' as const),
    'aria-describedby': describedBy === '' ? undefined : describedBy,
  }
  return (
    <div className="field">
      <label for={id}>{label}</label>
      {hint && (
        <p className="soft hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {props.isLong ? (
        <textarea
          {...common}
          rows={4}
          onInput={(event: JSX.TargetedInputEvent<HTMLTextAreaElement>) => onValue(event.currentTarget.value)}
        />
      ) : (
        <input
          {...common}
          ref={input}
          type={type}
          inputMode={inputMode}
          onInput={(event: JSX.TargetedInputEvent<HTMLInputElement>) => onValue(event.currentTarget.value)}
        />
      )}
      {problem && (
        <p className="problem" id={`${id}-problem`} role="alert">
          {problem}
        </p>
      )}
    </div>
  )
}

/** A field for a password, which the person may look at while typing. */
export function PasswordField(props: Omit<FieldProps, 'type'>) {
  const words = useWords()
  const [isShown, show] = useState(false)
  return (
    <>
      <Field {...props} type={isShown ? 'text' : 'password'} />
      <label className="check">
        <input type="checkbox" checked={isShown} onChange={() => show(!isShown)} />
        {words.showPassword}
      </label>
    </>
  )
}

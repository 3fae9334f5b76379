import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface SelectFieldProps {
  label: string
  value: string
  onValue: (value: string) => void
  problem?: string | undefined
  /** The options. */
  children: ComponentChildren
}

/** A choice of a form with its name, and the problem that it has. */
export function SelectField({ label, value, onValue, problem, children }: SelectFieldProps) {
  const id = useId()
  return (
    <div className="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value}
        aria-invalid={problem === undefined ? undefined : 'true'}
        aria-describedby={problem && `${id}-problem`}
        onChange={({ currentTarget }) => onValue(currentTarget.value)}
      >
        {children}
      </select>
      {problem && (
        <p className="problem" id={`${id}-problem`} role="alert">
          {problem}
        </p>
      )}
    </div>
  )
}

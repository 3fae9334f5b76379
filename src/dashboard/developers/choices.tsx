interface ChoicesProps<Value extends string> {
  /** The words above the choices. */
  title: string
  /** The values that can be chosen, with their names. */
  options: readonly (readonly [value: Value, name: string])[]
  chosen: readonly Value[]
  onChoose: (chosen: readonly Value[]) => void
  problem?: string | undefined
}

/** Several values, each of which is chosen or not. */
export function Choices<Value extends string>({
  title,
  options,
  chosen,
  onChoose,
  problem,
}: ChoicesProps<Value>) {
  return (
    <fieldset>
      <legend>{title}</legend>
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      {options.map(([value, name]) => (
        <label key={value} className="check">
          <input
            type="checkbox"
            checked={chosen.includes(value)}
            onChange={({ currentTarget }) =>
              onChoose(currentTarget.checked ? [...chosen, value] : chosen.filter((one) => one !== value))
            }
          />
          {name}
        </label>
      ))}
    </fieldset>
  )
}

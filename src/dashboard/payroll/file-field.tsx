import { useId, useState } from 'preact/hooks'
import { namedOperators } from '../operator-label.ts'
import { usePayrollWords } from './words.ts'

interface FileFieldProps {
  /** The name of the chosen file; undefined where there is none. */
  name: string | undefined
  problem: string | undefined
  onFile: (file: File) => void
}

/** A field for a file, which the person picks or drops. */
export function FileField({ name, problem, onFile }: FileFieldProps) {
  const { file: words } = usePayrollWords()
  const id = useId()
  const [isOver, setOver] = useState(false)
  const take = (files: FileList | null | undefined) => {
    const [file] = files ?? []
    if (file) onFile(file)
  }
  return (
    <div className="field">
      <p className="label" id={`${id}-label`}>
        {words.label}
      </p>
      <div className="soft hint" id={`${id}-hint`}>
        <p>{words.hint}</p>
        {namedOperators.length > 0 && (
          <p>
            {words.operators}{' '}
            {namedOperators.map(([operator, label]) => words.operator(operator, label)).join(', ')}.
          </p>
        )}
      </div>
      <div
        className={isOver ? 'drop over' : 'drop'}
        onDragOver={(event) => {
          event.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault()
          setOver(false)
          take(event.dataTransfer?.files)
        }}
      >
        <input
          type="file"
          className="unseen"
          id={id}
          aria-labelledby={`${id}-label`}
          aria-describedby={`${id}-hint ${id}-problem`}
          aria-invalid={problem === undefined ? undefined : 'true'}
          onChange={({ currentTarget }) => {
            take(currentTarget.files)
            // The same file can be chosen again after it was corrected.
            currentTarget.value = ''
          }}
        />
        <label for={id} className="action quiet">
          {name === undefined ? words.choose : words.other}
        </label>
        {name === undefined ? <span className="soft">{words.drop}</span> : <strong>{name}</strong>}
      </div>
      {problem && (
        <p className="problem" id={`${id}-problem`} role="alert">
          {problem}
        </p>
      )}
    </div>
  )
}

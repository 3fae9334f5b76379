import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import { useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { folder } from '../page-facts.ts'
import { Field } from '../parts/field.tsx'
import { newKey } from '../sent-money.ts'
import { FileField } from './file-field.tsx'
import { type ImportOutcome, type ImportProblem, importFile } from './import-file.ts'
import { problemsByLine } from './import-problems.ts'
import { usePayrollWords } from './words.ts'

/** The largest number of problems of one answer. */
const problemsShownMax = 100

/** The longest name of a payroll. */
const titleLengthMax = 200

/** A table as it was when the person chose it: what is checked is what is paid. */
interface ChosenTable {
  name: string
  content: Blob
  /** Under this key the service makes one draft of the table. */
  key: string
}

/** A new payroll: the person chooses a file, and corrects it until the service makes a draft of it. */
export function UploadScreen() {
  const words = usePayrollWords()
  const { mayPayMany } = useMe()
  return (
    <>
      <p>
        <Link href="/payroll">‹ {words.back}</Link>
      </p>
      <h1>{words.start}</h1>
      <section className="card request">{mayPayMany ? <UploadForm /> : <p>{words.mayNot}</p>}</section>
    </>
  )
}

function UploadForm() {
  const words = usePayrollWords()
  const common = useWords()
  const [, goTo] = useLocation()
  const [table, setTable] = useState<ChosenTable>()
  const [title, setTitle] = useState('')
  const [isSending, setSending] = useState(false)
  const [problem, setProblem] = useState<string>()
  const [problems, setProblems] = useState<readonly ImportProblem[]>([])
  const report = useRef<HTMLElement>(null)
  const latest = useRef(table)
  latest.current = table

  async function choose(file: File): Promise<void> {
    setProblems([])
    setProblem(undefined)
    try {
      setTable({ name: file.name, content: new Blob([await file.arrayBuffer()]), key: newKey() })
      const name = Array.from(file.name.replace(/\.\w+$/, ''))
      if (title === '') setTitle(name.slice(0, titleLengthMax).join(''))
    } catch {
      setTable(undefined)
      setProblem(words.file.unread)
    }
  }
  async function send(event: JSX.TargetedSubmitEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault()
    if (isSending) return
    setProblem(table ? undefined : words.file.missing)
    if (!table) return
    setSending(true)
    setProblems([])
    const outcome = await importFile(table.content, title.trim(), table.key)
    setSending(false)
    if (outcome.type === 'draft') goTo(`/payroll/${outcome.id}`, { state: { warnings: outcome.warnings } })
    // The person may have chosen the corrected file meanwhile: the problems are those of the one before.
    else if (latest.current === table) refuse(outcome)
  }
  function refuse(outcome: Exclude<ImportOutcome, { type: 'draft' }>): void {
    const isLost = outcome.type === 'lost' || outcome.code === 'IDEMPOTENCY_KEY_BUSY'
    if (isLost) setProblem(words.file.lost)
    else if (outcome.problems.length > 0) {
      setProblems(outcome.problems)
      // Another title is another request.
      setTable(table && { ...table, key: newKey() })
      requestAnimationFrame(() => report.current?.focus())
    } else if (outcome.code === 'BODY_TOO_LARGE') setProblem(words.file.tooLarge)
    else if (outcome.code === 'IDEMPOTENCY_KEY_REUSED') setProblem(words.file.sentBefore)
    else setProblem(common.refusals[outcome.code as keyof typeof common.refusals] ?? common.failure.unknown)
  }

  return (
    <form onSubmit={(event) => void send(event)}>
      <FileField name={table?.name} problem={problem} onFile={(file) => void choose(file)} />
      <p className="bar">
        <a href={templateAddress('xlsx')} download>
          {words.file.template}
        </a>
        <a href={templateAddress('csv')} download>
          {words.file.templateCsv}
        </a>
      </p>
      {problems.length > 0 && (
        <section
          className="alert"
          ref={report}
          tabIndex={-1}
          aria-label={words.problems.title(problems.length)}
        >
          <Problems problems={problems} />
        </section>
      )}
      <Field
        label={words.file.name}
        value={title}
        onValue={setTitle}
        autoComplete="off"
        maxLength={titleLengthMax}
      />
      <button aria-disabled={isSending}>{isSending ? words.file.checking : words.file.check}</button>
      <p className="soft" role="status">
        {isSending ? words.file.checking : words.file.nothingPaid}
      </p>
    </form>
  )
}

function templateAddress(kind: 'xlsx' | 'csv'): string {
  return new URL(`../merchant/api/bulk/batches/template.${kind}`, folder).href
}

function Problems({ problems }: { problems: readonly ImportProblem[] }) {
  const words = usePayrollWords()
  return (
    <>
      <h2>{words.problems.title(problems.length)}</h2>
      <p>{words.problems.nothingKept}</p>
      <ul className="rows">
        {problemsByLine(problems, words).map(({ line, content, texts }) => (
          <li key={line} className="below">
            <strong>{line === null ? words.problems.wholeFile : words.problems.line(line)}</strong>
            {content !== '' && <span className="soft"> {content}</span>}
            {texts.map((text) => (
              <p key={text} className="problem">
                {text}
              </p>
            ))}
          </li>
        ))}
      </ul>
      {problems.length >= problemsShownMax && <p>{words.problems.more}</p>}
    </>
  )
}

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { formatPhone, formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import type { StatementRowFragment } from '../operations.ts'
import { changeOf, formatChange, formatLineTime, isShown, nameOf, pathOf, referenceOf } from './present.ts'
import { useStatementWords } from './words.ts'

interface LinesProps {
  lines: readonly StatementRowFragment[]
  hasMore: boolean
  isReading: boolean
  readMore: () => void
}

/**
 * The lines of a month, the oldest first. The roles stand beside the elements, because a browser takes a
 * table whose rows are arranged by a style sheet for none.
 */
export function Lines({ lines, hasMore, isReading, readMore }: LinesProps) {
  const words = useStatementWords()
  const common = useWords()
  const shown = lines.filter(isShown)
  const rows = useRef<HTMLTableSectionElement>(null)
  /** The number of lines when more were asked for; null once they came. */
  const shownBefore = useRef<number | null>(null)
  // The button that had the focus goes with the last lines: then the first of them takes it.
  useEffect(() => {
    if (shownBefore.current === null || isReading) return
    const first = Math.min(shownBefore.current, shown.length - 1)
    if (document.activeElement === document.body) rows.current?.rows[first]?.focus()
    shownBefore.current = null
  }, [isReading])
  const more = () => {
    shownBefore.current = shown.length
    readMore()
  }
  return (
    <section className="card">
      <h2 id="lines">{words.lines}</h2>
      {shown.length === 0 && !hasMore && <p>{words.none}</p>}
      {shown.length > 0 && (
        <table className="lines" role="table" aria-labelledby="lines">
          <thead role="rowgroup">
            <tr role="row">
              {[words.time, words.operation, words.amount, words.balance].map((name) => (
                <th key={name} role="columnheader" scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup" ref={rows}>
            {shown.map((line) => (
              <LineRow key={line.entry.id} line={line} />
            ))}
          </tbody>
        </table>
      )}
      {hasMore && (
        <button
          type="button"
          className="quiet"
          aria-disabled={isReading}
          onClick={() => !isReading && more()}
        >
          {isReading ? common.loading : words.more}
        </button>
      )}
      {lines.length > 0 && <p className="soft">{words.leftOut}</p>}
    </section>
  )
}

function LineRow({ line }: { line: StatementRowFragment }) {
  const words = useStatementWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const path = pathOf(line)
  const name = nameOf(line, words)
  return (
    <tr role="row" tabIndex={-1}>
      <td role="cell" className="time">
        {formatLineTime(line.entry.createdAt, language, timeZone)}
      </td>
      <td role="cell" className="operation">
        <span className="name">{path === null ? name : <Link href={path}>{name}</Link>}</span>
        <Details line={line} />
      </td>
      <td role="cell" className="change">
        {formatChange(changeOf(line), language)}
      </td>
      <td role="cell" className="after" data-name={words.balance}>
        {formatXof(line.balanceAfter.balance, language)}
      </td>
    </tr>
  )
}

/** The other person, the payroll, the reference, and what became owed, as far as a line has them. */
function Details({ line }: { line: StatementRowFragment }) {
  const words = useStatementWords()
  const language = useLanguage()
  const { counterparty, subject, receivableChange } = line
  const reference = referenceOf(line)
  const batch = subject?.__typename === 'BatchRecipient' ? (subject.batch.title ?? words.untitled) : null
  const details: ComponentChildren[] = [
    counterparty?.name && <bdi>{counterparty.name}</bdi>,
    counterparty && <bdi className="number">{formatPhone(counterparty.phone)}</bdi>,
    batch && <bdi>{batch}</bdi>,
    reference && <bdi>{reference}</bdi>,
    receivableChange !== 0 && words.owed(formatChange(receivableChange, language)),
  ].filter(Boolean)
  if (details.length === 0) return null
  return (
    <span className="soft details">
      {details.map((detail, index) => (
        <span key={index}>
          {index > 0 && ' · '}
          {detail}
        </span>
      ))}
    </span>
  )
}

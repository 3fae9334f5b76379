import { useEffect, useRef } from 'preact/hooks'
import { Link, useLocation, useSearch } from 'wouter-preact'
import { useLanguage } from '../language.ts'
import { useMe } from '../me.ts'
import { folder } from '../page-facts.ts'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { Lines } from './lines.tsx'
import { formatMonth, monthBeside, monthsToChoose, readMonth, spanOf, thisMonth } from './months.ts'
import { PrintButton } from './print-button.tsx'
import { PrintHead } from './print-head.tsx'
import { Sums } from './sums.tsx'
import { useStatement } from './use-statement.ts'
import { useStatementWords } from './words.ts'

const pathOfMonth = (month: string) => `/statement?month=${month}`

/** The statement of a month: the balances, what moved in between, on paper and as a file. */
export function StatementScreen() {
  const words = useStatementWords()
  const { timeZone } = useMe()
  const month = readMonth(useSearch(), timeZone)
  return (
    <div className="statement">
      <h1>{words.title(formatMonth(month, useLanguage()))}</h1>
      <MonthChoice month={month} />
      <Month key={month} month={month} />
    </div>
  )
}

function MonthChoice({ month }: { month: string }) {
  const words = useStatementWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const [, goTo] = useLocation()
  const before = monthBeside(month, -1, timeZone)
  const after = monthBeside(month, 1, timeZone)
  return (
    <div className="months field">
      <select
        aria-label={words.month}
        value={month}
        onChange={({ currentTarget }) => goTo(pathOfMonth(currentTarget.value))}
      >
        {monthsToChoose(month, timeZone).map((each) => (
          <option key={each} value={each}>
            {formatMonth(each, language)}
          </option>
        ))}
      </select>
      {before !== null && (
        <Link href={pathOfMonth(before)} className="action quiet">
          ‹ {words.before}
        </Link>
      )}
      {after !== null && (
        <Link href={pathOfMonth(after)} className="action quiet">
          {words.after} ›
        </Link>
      )}
    </div>
  )
}

function Month({ month }: { month: string }) {
  const words = useStatementWords()
  const { timeZone } = useMe()
  const span = spanOf(month, timeZone)
  const isRunning = month === thisMonth(timeZone)
  const statement = useStatement(span, isRunning)
  const { figures, error, readAt, hasMore } = statement
  useFocusAfter(error !== undefined)
  if (!figures) {
    return error ? <Failure error={error} retry={() => void statement.refresh()} /> : <Loading />
  }
  return (
    <>
      {error && <Stale retry={() => void statement.refresh()} />}
      <PrintHead month={month} readAt={readAt} hasMore={hasMore} />
      <Sums figures={figures} isRunning={isRunning} />
      <div className="bar ways-out">
        <PrintButton
          total={figures.lines.totalCount}
          read={statement.lines.length}
          readAll={statement.readAll}
        />
        <a href={exportAddress(span)} download>
          {words.download}
        </a>
      </div>
      <Lines
        lines={statement.lines}
        hasMore={hasMore}
        isReading={statement.isReading}
        readMore={() => void statement.readMore()}
      />
    </>
  )
}

/** Gives the focus to the page where it was on a button of a failure that is over, and went with it. */
function useFocusAfter(hasFailed: boolean): void {
  const hadFailed = useRef(false)
  useEffect(() => {
    const isLost = hadFailed.current && !hasFailed && document.activeElement === document.body
    if (isLost) document.querySelector('main')?.focus({ preventScroll: true })
    hadFailed.current = hasFailed
  }, [hasFailed])
}

function exportAddress(span: { from: string; to: string }): string {
  const query = new URLSearchParams(span)
  return new URL(`../merchant/api/exports/statement.csv?${query}`, folder).href
}

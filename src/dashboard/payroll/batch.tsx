import { useEffect, useRef, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { formatMoment, formatXof, isolate } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useBatchProgress, useCalm } from '../live.ts'
import { useMe } from '../me.ts'
import { batchQuery } from '../operations.ts'
import { folder } from '../page-facts.ts'
import { Facts } from '../parts/facts.tsx'
import { Missing } from '../parts/missing.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { Actions } from './actions.tsx'
import { Draft } from './draft.tsx'
import type { ImportProblem } from './import-file.ts'
import { problemsByLine } from './import-problems.ts'
import { BatchBadge } from './list.tsx'
import { type Batch, latestOf, type BatchStep } from './present.ts'
import { Recipients } from './recipients.tsx'
import { usePayrollWords, usePeople } from './words.ts'

/** The pause before the recipients are read again while their payments go on, in milliseconds. */
const recipientsPauseMs = 2_000

/** One payroll from its draft to its end, live: what it pays, what became of it, and what a person can do. */
export function BatchScreen({ id }: { id: string }) {
  const words = usePayrollWords()
  const { mayPayMany } = useMe()
  const { data, error, again } = useSteadyQuery(batchQuery, { id })
  const [step, setStep] = useState<BatchStep>()
  const [version, setVersion] = useState(0)
  const readRecipientsAgain = useCalm(() => setVersion((before) => before + 1), recipientsPauseMs)
  const readAgain = useCalm(again)
  useBatchProgress(id, data?.asOfSequence, (change) => {
    setStep(change)
    readRecipientsAgain()
    const { status, recipientCount } = data?.batch ?? {}
    if (change.status !== status || change.recipientCount !== recipientCount) readAgain()
  })
  if (!data) return error ? <Failure error={error} retry={again} /> : <Loading />
  const batch = data.batch && latestOf(data.batch, data.asOfSequence ?? 0, step)
  return (
    <>
      <p>
        <Link href="/payroll">‹ {words.back}</Link>
      </p>
      {error && <Stale retry={again} />}
      {batch ? (
        <>
          <Summary batch={batch} end={step?.estimatedEnd ?? null} again={again} />
          <Warnings />
          {batch.status === 'DRAFT' && mayPayMany && (
            <Draft batch={batch} available={data.balance?.available ?? null} again={again} />
          )}
          <Recipients batch={batch} version={`${version} ${batch.status}`} />
        </>
      ) : (
        <Missing text={words.missing} />
      )}
    </>
  )
}

/** The warnings about the file of which the payroll was just made. */
function Warnings() {
  const words = usePayrollWords()
  const { warnings = [] } = (history.state ?? {}) as { warnings?: readonly ImportProblem[] }
  // The draft itself names the numbers that occur twice.
  const ofFile = warnings.filter(({ field }) => field === 'file')
  if (ofFile.length === 0) return null
  const texts = problemsByLine(ofFile, words).flatMap((group) => group.texts)
  return (
    <section className="alert">
      {texts.map((text) => (
        <p key={text}>{text}</p>
      ))}
    </section>
  )
}

interface SummaryProps {
  batch: Batch
  /** The moment when the payroll is expected to end. */
  end: string | null
  again: () => void
}

function Summary({ batch, end, again }: SummaryProps) {
  const words = usePayrollWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const { approvals } = useWords()
  const { status, title, totalAmount, paidAmount, returnedAmount, createdBy, retryOf } = batch
  const { expiresAt, reason } = batch.approval
  const isWaiting = status === 'PENDING_APPROVAL'
  const heading = useFocusAfter(status)
  const people = usePeople()
  const hasBegun = status !== 'DRAFT' && !isWaiting
  return (
    <section className="card request">
      <h1 ref={heading} tabIndex={-1}>
        <bdi>{title ?? words.untitled}</bdi>
      </h1>
      <p className="sum">{formatXof(totalAmount, language)}</p>
      <p role="status">
        <BatchBadge status={status} /> {people(batch.recipientCount)}
      </p>
      {status === 'PROCESSING' && <Progress batch={batch} end={end} />}
      {isWaiting && (
        <>
          <p>{words.waits}</p>
          <p>
            <Link href="/approvals">{words.decide}</Link>
          </p>
        </>
      )}
      {reason && <p className="problem">{words.rejectedBecause(reason)}</p>}
      <Facts
        facts={[
          [words.paid, hasBegun && formatXof(paidAmount, language)],
          [words.returned, returnedAmount > 0 && formatXof(returnedAmount, language)],
          [approvals.until, isWaiting && expiresAt && formatMoment(expiresAt, language, timeZone)],
          [
            words.createdBy,
            `${isolate(createdBy.name)} · ${formatMoment(batch.createdAt, language, timeZone)}`,
          ],
          [words.retryOf, retryOf && <Link href={`/payroll/${retryOf.databaseId}`}>{words.firstTry}</Link>],
        ]}
      />
      {status !== 'DRAFT' && <Actions batch={batch} again={again} />}
      <p>
        <a href={exportAddress(batch.databaseId)} download>
          {words.download}
        </a>
      </p>
    </section>
  )
}

/** Returns the heading, which gets the focus where the button that had it went with the old state. */
function useFocusAfter(status: Batch['status']) {
  const heading = useRef<HTMLHeadingElement>(null)
  const first = useRef(status)
  useEffect(() => {
    if (status !== first.current && document.activeElement === document.body) heading.current?.focus()
  }, [status])
  return heading
}

function exportAddress(id: number): string {
  return new URL(`../merchant/api/exports/recipients.csv?batch_id=${id}`, folder).href
}

function Progress({ batch, end }: Omit<SummaryProps, 'again'>) {
  const words = usePayrollWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const number = new Intl.NumberFormat(language)
  const { recipientCount, succeededCount, failedCount, cancelledCount } = batch
  const done = succeededCount + failedCount + cancelledCount
  return (
    <div role="group" aria-label={words.statuses.PROCESSING}>
      <progress max={recipientCount} value={done} aria-label={words.statuses.PROCESSING} />
      <p className="soft">
        {words.progress(number.format(done), number.format(recipientCount))}
        {end !== null && ` · ${words.end(formatMoment(end, language, timeZone))}`}
      </p>
    </div>
  )
}

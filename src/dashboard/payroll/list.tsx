import { Link } from 'wouter-preact'
import { formatMoment, formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useBatchChanges } from '../live.ts'
import { useMe } from '../me.ts'
import { type BatchRowFragment, batchesQuery } from '../operations.ts'
import { PagesBar, usePages } from '../parts/pages.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { usePayrollWords, usePeople } from './words.ts'

/** The payrolls of one page. Choice: two screens of a telephone. */
const pageSize = 20

/** All payrolls, the newest first, live, and the way to a new one. */
export function PayrollsScreen() {
  const words = usePayrollWords()
  const { mayPayMany } = useMe()
  const pages = usePages()
  const page = useSteadyQuery(batchesQuery, {
    first: pageSize,
    ...(pages.after !== undefined && { after: pages.after }),
  })
  useBatchChanges(page.data?.asOfSequence, page.again)
  const { data, error, again } = page
  const batches = data?.batches
  return (
    <>
      <h1>{useWords().payroll}</h1>
      {mayPayMany && (
        <p>
          <Link href="/payroll/new" className="action">
            {words.start}
          </Link>
        </p>
      )}
      {!batches && (error ? <Failure error={error} retry={again} /> : <Loading />)}
      {batches && error && <Stale retry={again} />}
      {batches && (
        <section className="card">
          {batches.totalCount === 0 && <p>{words.none}</p>}
          {batches.totalCount === 0 && <p className="soft">{words.lead}</p>}
          <ul className="rows">
            {batches.nodes.map((batch) => (
              <BatchRow key={batch.id} batch={batch} />
            ))}
          </ul>
          <PagesBar pages={pages} pageInfo={batches.pageInfo} words={words} />
        </section>
      )}
    </>
  )
}

function BatchRow({ batch }: { batch: BatchRowFragment }) {
  const words = usePayrollWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const { databaseId, title, recipientCount, createdAt, totalAmount, status } = batch
  const people = usePeople()
  return (
    <li>
      <div>
        <Link href={`/payroll/${databaseId}`} className="wide-link">
          <bdi>{title ?? words.untitled}</bdi>
        </Link>
        <p className="soft">
          {people(recipientCount)} · {formatMoment(createdAt, language, timeZone)}
        </p>
      </div>
      <div className="end">
        <strong className="number">{formatXof(totalAmount, language)}</strong>
        <p>
          <BatchBadge status={status} />
        </p>
      </div>
    </li>
  )
}

/** The state of a payroll in a word or two, with its colour. */
export function BatchBadge({ status }: Pick<BatchRowFragment, 'status'>) {
  const words = usePayrollWords()
  return <span className={`state ${tones[status] ?? ''}`}>{words.statuses[status]}</span>
}

const tones: Readonly<Partial<Record<BatchRowFragment['status'], string>>> = {
  COMPLETED: 'good',
  PARTIALLY_COMPLETED: 'bad',
  FAILED: 'bad',
  CANCELLED: 'over',
}

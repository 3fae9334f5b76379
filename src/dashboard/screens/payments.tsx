import { useEffect, useRef } from 'preact/hooks'
import { useSearch } from 'wouter-preact'
import { useLanguage, useWords } from '../language.ts'
import { useLiveness } from '../live.ts'
import { useMe } from '../me.ts'
import { apiFilterOf, isSearchable, type PaymentFilter, readFilter, writeFilter } from '../payment-filter.ts'
import { usePaymentList, visitFromList } from '../payment-list.ts'
import { FilterBar } from '../parts/filter-bar.tsx'
import { FilterForm } from '../parts/filter-form.tsx'
import { PaymentRow } from '../parts/payment-row.tsx'
import { Failure, FirstSteps, Loading, Stale } from '../parts/states.tsx'

/** All payments, the newest first: searched, filtered, and live without losing the reader's position. */
export function PaymentsScreen() {
  const words = useWords()
  const query = useSearch()
  const filter = readFilter(query)
  return (
    <>
      <h1>{words.payments.title}</h1>
      <FilterForm key={query} filter={filter} />
      {!isSearchable(filter.search) && (
        <p className="problem" role="alert">
          {words.payments.searchTooShort}
        </p>
      )}
      <FilterBar filter={filter} />
      <List filter={filter} />
    </>
  )
}

function List({ filter }: { filter: PaymentFilter }) {
  const words = useWords()
  const { timeZone } = useMe()
  const query = writeFilter(filter)
  const list = usePaymentList(query, apiFilterOf(filter, timeZone))
  const section = useRef<HTMLElement>(null)
  const { rows, newer, total, next, error, isReading } = list
  useEffect(() => {
    if (newer.length > 0 && isAtRest(section.current)) list.showNewer()
  }, [newer])
  if (total === null) {
    return error ? <Failure error={error} retry={list.retry} /> : <Loading />
  }
  return (
    <section className="card" ref={section}>
      <Heading total={total} />
      {error && <Stale retry={list.retry} />}
      {newer.length > 0 && (
        <button type="button" className="quiet newer" onClick={list.showNewer}>
          {words.payments.newer(newer.length)}
        </button>
      )}
      {rows.length === 0 && (query === '' ? <FirstSteps /> : <p>{words.payments.none}</p>)}
      <ul className="rows">
        {rows.map((payment) => (
          <PaymentRow key={payment.id} payment={payment} timeZone={timeZone} visit={visitFromList} />
        ))}
      </ul>
      {next !== null && (
        <button type="button" className="quiet" aria-disabled={isReading} onClick={list.readOlder}>
          {isReading ? words.loading : words.payments.older}
        </button>
      )}
    </section>
  )
}

function Heading({ total }: { total: number }) {
  const words = useWords()
  const language = useLanguage()
  const liveness = useLiveness()
  return (
    <h2>
      {words.payments.count(total, new Intl.NumberFormat(language).format(total))}
      <span className={`liveness ${liveness}`} role="status">
        {words.home[liveness]}
      </span>
    </h2>
  )
}

/** The part of the page above which it counts as its beginning, in pixels. */
const topPx = 80

/** Whether the reader is at the beginning of the page, with neither the pointer nor the focus in the list. */
function isAtRest(list: HTMLElement | null): boolean {
  return scrollY < topPx && list?.matches(':hover, :focus-within') !== true
}

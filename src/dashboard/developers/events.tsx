import { Link } from 'wouter-preact'
import { formatInstant } from '../format.ts'
import { useLanguage } from '../language.ts'
import { useEventChanges } from '../live.ts'
import { useMe } from '../me.ts'
import { eventsQuery } from '../operations.ts'
import { PagesBar, usePages } from '../parts/pages.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { useDeveloperWords } from './words.ts'

/** The events of one page. */
const pageSize = 30

/** The event log, the newest event first, live. */
export function EventsScreen() {
  const words = useDeveloperWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const pages = usePages()
  const { data, error, again } = useSteadyQuery(eventsQuery, {
    last: pageSize,
    ...(pages.after !== undefined && { before: pages.after }),
  })
  useEventChanges(data?.asOfSequence, again)
  const log = data?.events
  const page = log && { hasNextPage: log.pageInfo.hasPreviousPage, endCursor: log.pageInfo.startCursor }
  return (
    <>
      <p>
        <Link href="/developers">‹ {words.back}</Link>
      </p>
      <h1>{words.log.title}</h1>
      <p>{words.log.lead}</p>
      {!log && (error ? <Failure error={error} retry={again} /> : <Loading />)}
      {log && (
        <section className="card">
          {error && <Stale retry={again} />}
          {log.nodes.length === 0 && <p>{words.log.none}</p>}
          <ul className="rows">
            {log.nodes.toReversed().map(({ id, type, occurredAt, data: content }) => (
              <li key={id} className="below">
                <strong>{words.events[type]}</strong> <code>{type.toLowerCase()}</code>
                <p className="soft">
                  {formatInstant(occurredAt, language, timeZone)} · {id}
                </p>
                <details>
                  <summary>{words.log.data}</summary>
                  <pre>{JSON.stringify(content, null, 2)}</pre>
                </details>
              </li>
            ))}
          </ul>
          {page && (
            <PagesBar pages={pages} pageInfo={page} words={{ newer: words.newer, older: words.older }} />
          )}
        </section>
      )}
    </>
  )
}

import { Link, useSearchParams } from 'wouter-preact'
import { useWords } from '../language.ts'
import { auditLogQuery } from '../operations.ts'
import { isId } from '../parts/missing.tsx'
import { PagesBar, useKept, usePages } from '../parts/pages.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { EntryRow } from './log-entry.tsx'
import { membersIn } from './log-changes.ts'
import { useNamedMembers } from './use-named-members.ts'
import { Verification } from './verification.tsx'
import { useTeamWords } from './words.ts'

/** The entries of one page. */
const pageSize = 50

/** The log of the changes that people and programs made, and its verification. */
export function LogScreen() {
  const words = useTeamWords()
  const [search] = useSearchParams()
  const author = search.get('by') ?? ''
  const by = isId(author) ? author : null
  const members = useNamedMembers(by === null ? [] : [`member:${by}`])
  return (
    <>
      <p>
        <Link href="/team">‹ {words.back}</Link>
      </p>
      <h1>{words.log}</h1>
      {by === null ? (
        <Verification />
      ) : (
        <p>
          {words.entries.onlyBy(members.get(`member:${by}`)?.name ?? words.entries.member(by))}{' '}
          <Link href="/team/log">{words.entries.byAll}</Link>
        </p>
      )}
      <Entries key={by} by={by} />
    </>
  )
}

interface EntriesProps {
  /** The number of the member whose changes are shown; null for all. */
  by: string | null
}

function Entries({ by }: EntriesProps) {
  const words = useTeamWords()
  const { payments } = useWords()
  const pages = usePages()
  // The way back from a page of the log leads to the same entries.
  const [hasPayments, showPayments] = useKept('payments', false)
  const { data, error, again } = useSteadyQuery(auditLogQuery, {
    first: pageSize,
    ...(pages.after !== undefined && { after: pages.after }),
    filter: { ...(by !== null && { actor: `member:${by}` }), ...(!hasPayments && { isPayment: false }) },
  })
  const log = data?.auditLog
  const members = useNamedMembers((log?.nodes ?? []).flatMap(membersIn))
  if (!log) return error ? <Failure error={error} retry={again} /> : <Loading />
  return (
    <section className="card">
      {error && <Stale retry={again} />}
      {log.nodes.length === 0 && <p>{words.entries.none}</p>}
      <ul className="rows">
        {log.nodes.map((entry) => (
          <EntryRow key={entry.id} entry={entry} members={members} />
        ))}
      </ul>
      <PagesBar pages={pages} pageInfo={log.pageInfo} words={{ newer: words.newer, older: payments.older }} />
      {by === null && (
        <label className="check">
          <input
            type="checkbox"
            checked={hasPayments}
            onChange={() => {
              showPayments(!hasPayments)
              pages.toFirst()
            }}
          />
          {words.entries.payments}
        </label>
      )}
    </section>
  )
}

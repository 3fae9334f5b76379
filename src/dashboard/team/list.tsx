import { useEffect, useRef, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { useHistoryState } from 'wouter-preact/use-browser-location'
import { useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { type MemberFragment, teamQuery } from '../operations.ts'
import { PagesBar, usePages } from '../parts/pages.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { InviteForm } from './invite-form.tsx'
import { useTeamWords } from './words.ts'

/** The members of one page: most teams are smaller. */
const pageSize = 50

/** The team, the newest member first, and the way to invite a person. */
export function TeamScreen() {
  const words = useTeamWords()
  const { payments } = useWords()
  const pages = usePages()
  const left = useHistoryState<{ left?: string } | null>()?.left
  const [sentTo, setSentTo] = useState<string>()
  const said = useRef<HTMLParagraphElement>(null)
  // The form that had the focus is closed.
  useEffect(() => {
    if (sentTo !== undefined) said.current?.focus()
  }, [sentTo])
  const [isOpen, open] = useState(false)
  const { data, error, again } = useSteadyQuery(teamQuery, {
    first: pageSize,
    ...(pages.after !== undefined && { after: pages.after }),
  })
  const members = data?.members
  if (!members) return error ? <Failure error={error} retry={again} /> : <Loading />
  return (
    <>
      <h1>{words.title}</h1>
      <p>
        <Link href="/team/log">{words.log}</Link>
      </p>
      {error && <Stale retry={again} />}
      <section className="card request">
        <p className="soft">{words.lead}</p>
        <p role="status" ref={said} tabIndex={-1}>
          {sentTo === undefined ? left : words.invite.sent(sentTo)}
        </p>
        <details open={isOpen} onToggle={({ currentTarget }) => open(currentTarget.open)}>
          <summary>{words.invite.title}</summary>
          {isOpen && (
            <InviteForm
              onInvited={(email) => {
                setSentTo(email)
                open(false)
                again()
              }}
            />
          )}
        </details>
      </section>
      <section className="card">
        <ul className="rows">
          {members.nodes.map((member) => (
            <MemberRow key={member.id} member={member} />
          ))}
        </ul>
        <PagesBar
          pages={pages}
          pageInfo={members.pageInfo}
          words={{ newer: words.newer, older: payments.older }}
        />
      </section>
    </>
  )
}

function MemberRow({ member }: { member: MemberFragment }) {
  const words = useTeamWords()
  const { roles } = useWords()
  const { memberId } = useMe()
  const { databaseId, name, email, role, status } = member
  return (
    <li>
      <div>
        <Link href={`/team/${databaseId}`} className="wide-link">
          <bdi>{name}</bdi>
        </Link>
        <p className="soft">{email}</p>
      </div>
      <div className="end">
        <p>
          {roles[role]}
          {databaseId === memberId && ` · ${words.self}`}
        </p>
        {status === 'INVITED' && <span className="state">{words.invited}</span>}
      </div>
    </li>
  )
}

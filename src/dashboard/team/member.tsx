import { Link } from 'wouter-preact'
import { formatDay } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { type MemberFragment, memberQuery } from '../operations.ts'
import { isId, Missing } from '../parts/missing.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { MemberActions } from './member-actions.tsx'
import { useTeamWords } from './words.ts'

/** One member of the team. */
export function MemberScreen({ id }: { id: string }) {
  const words = useTeamWords()
  return (
    <>
      <p>
        <Link href="/team">‹ {words.back}</Link>
      </p>
      {isId(id) ? <Member id={id} /> : <Missing text={words.missing} />}
    </>
  )
}

function Member({ id }: { id: string }) {
  const words = useTeamWords()
  const { data, error, again } = useSteadyQuery(memberQuery, { id })
  if (!data) return error ? <Failure error={error} retry={again} /> : <Loading />
  const { member } = data
  if (!member) return <Missing text={words.missing} />
  return (
    <>
      {error && <Stale retry={again} />}
      <section className="card request">
        <Summary member={member} />
        <MemberActions member={member} again={again} />
      </section>
      <p>
        <Link href={`/team/log?by=${member.databaseId}`}>{words.deeds}</Link>
      </p>
    </>
  )
}

function Summary({ member }: { member: MemberFragment }) {
  const words = useTeamWords()
  const { roles } = useWords()
  const language = useLanguage()
  const { timeZone, memberId } = useMe()
  const { name, email, role, joinedAt, createdAt, hasSecondFactor } = member
  const isSelf = member.databaseId === memberId
  return (
    <>
      <h1>
        <bdi>{name}</bdi>
      </h1>
      <p className="soft">{email}</p>
      <p>
        <strong>{roles[role]}</strong> · {words.roles[role]}
      </p>
      {joinedAt === null ? (
        <p>{words.invitedAt(formatDay(createdAt, language, timeZone))}</p>
      ) : (
        <>
          <p>{words.joinedAt(formatDay(joinedAt, language, timeZone))}</p>
          <p className="soft">
            {hasSecondFactor && words.secondFactor}
            {!hasSecondFactor && !isSelf && words.noSecondFactor}
            {!hasSecondFactor && isSelf && <Link href="/sessions">{words.noOwnSecondFactor}</Link>}
          </p>
        </>
      )}
    </>
  )
}

import { useMutation } from '@urql/preact'
import { useRef, useState } from 'preact/hooks'
import { formatMoment } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import {
  type SessionsQuery,
  revokeSessionMutation,
  sessionsQuery,
  signOutEverywhereMutation,
} from '../operations.ts'
import { Failure, Loading } from '../parts/states.tsx'
import { problemText } from '../refusals.ts'
import { useSteadyQuery } from '../steady-query.ts'

/** Where the person is signed in; each of the sessions, or all, can be ended. */
export function Sessions() {
  const words = useWords()
  const { data, error, again } = useSteadyQuery(sessionsQuery, {})
  const [problem, setProblem] = useState<{ id?: string; text: string }>()
  const title = useRef<HTMLHeadingElement>(null)
  const [, revoke] = useMutation(revokeSessionMutation)
  const [, leaveEverywhere] = useMutation(signOutEverywhereMutation)

  async function end(id: string) {
    const { data: done, error: failed } = await revoke({ id })
    const text = problemText(failed, done?.revokeSession, words)
    setProblem(text === undefined ? undefined : { id, text })
    if (text === undefined) title.current?.focus()
    again()
  }
  async function endAll() {
    const { data: done, error: failed } = await leaveEverywhere({})
    const text = problemText(failed, done?.signOutEverywhere, words)
    if (text === undefined) location.reload()
    else setProblem({ text })
  }

  if (!data) return error ? <Failure error={error} retry={again} /> : <Loading />
  const sessions = data.sessions ?? []
  // A session that is gone has no problem, even where the answer was lost or two clicks ended it.
  const isShown = problem && (problem.id === undefined || sessions.some(({ id }) => id === problem.id))
  return (
    <section className="card">
      <h2 ref={title} tabIndex={-1}>
        {words.sessions.title}
      </h2>
      <p>{words.sessions.lead}</p>
      {isShown && (
        <p className="problem" role="alert">
          {problem.text}
        </p>
      )}
      <ul className="rows">
        {sessions.map((session) => (
          <SessionRow key={session.id} session={session} onEnd={() => void end(session.id)} />
        ))}
      </ul>
      <button type="button" className="quiet" onClick={() => void endAll()}>
        {words.sessions.endAll}
      </button>
    </section>
  )
}

interface SessionRowProps {
  session: NonNullable<SessionsQuery['sessions']>[number]
  onEnd: () => void
}

function SessionRow({ session, onEnd }: SessionRowProps) {
  const words = useWords()
  const language = useLanguage()
  const { isCurrent, createdAt, lastUsedAt, lastUsedFrom } = session
  return (
    <li>
      <div>
        <strong>{isCurrent ? words.sessions.current : (lastUsedFrom ?? words.sessions.unused)}</strong>
        <p className="soft">
          {words.sessions.since(formatMoment(createdAt, language))}
          {lastUsedAt && ` · ${words.sessions.lastUsed(formatMoment(lastUsedAt, language))}`}
        </p>
      </div>
      {!isCurrent && (
        <button type="button" className="small quiet" onClick={onEnd}>
          {words.sessions.end}
        </button>
      )}
    </li>
  )
}

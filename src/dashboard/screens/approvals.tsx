import { useEffect, useRef, useState } from 'preact/hooks'
import { useWords } from '../language.ts'
import { useMoneyChanges } from '../live.ts'
import { approvalsQuery } from '../operations.ts'
import { ApprovalCard } from '../parts/approval-card.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'

/** The most requests of the screen: those that expire first. */
const shownMax = 50

/** The pause after the cards moved, in which a click decides nothing, in milliseconds (a choice). */
const movedMs = 600

/** The requests that wait for an approval, live: what each is about, and the decision. */
export function ApprovalsScreen() {
  const words = useWords()
  const { data, error, again } = useSteadyQuery(approvalsQuery, { first: shownMax })
  const [outcome, setOutcome] = useState<{ text: string }>()
  const [tried, setTried] = useState<{ id: string; name: string }>()
  const [answers, setAnswers] = useState(0)
  useMoneyChanges(data?.asOfSequence, again)
  const waiting = data?.approvalsWaiting
  const subjects = waiting?.nodes ?? []
  const isGone = tried && !subjects.some(({ id }) => id === tried.id)
  const said = isGone ? words.approvals.gone(tried.name) : outcome?.text
  // The words above the cards move them, and so does each answer: the page goes to its top, or a card says
  // why the decision did not count.
  const hasMoved = useMoved(waiting ? [answers, said, ...subjects.map(({ id }) => id)].join(' ') : undefined)
  const heading = useHeading(outcome, isGone)
  if (!waiting) return error ? <Failure error={error} retry={again} /> : <Loading />
  const hidden = waiting.totalCount - subjects.length
  return (
    <>
      <h1 ref={heading} tabIndex={-1}>
        {words.approvals.title}
      </h1>
      {error && <Stale retry={again} />}
      <p role="status">{said}</p>
      {subjects.length === 0 && (
        <section className="card">
          <p>{words.approvals.none}</p>
          <p className="soft">{words.approvals.noneHint}</p>
        </section>
      )}
      {subjects.map((subject) => (
        <ApprovalCard
          key={subject.id}
          subject={subject}
          hasMoved={hasMoved}
          onTry={(name) => {
            setTried({ id: subject.id, name })
            setOutcome(undefined)
          }}
          onDecided={(text) => {
            setTried(undefined)
            setOutcome({ text })
            setAnswers((count) => count + 1)
            again()
          }}
          onDoubt={() => {
            setAnswers((count) => count + 1)
            again()
          }}
        />
      ))}
      {hidden > 0 && <p className="soft">{words.home.more(hidden)}</p>}
    </>
  )
}

/**
 * Returns the heading, which gets the focus after a decision: the button or the dialog that had it goes with
 * its card.
 */
function useHeading(outcome: object | undefined, isGone: boolean | undefined) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (outcome) heading.current?.focus()
  }, [outcome])
  useEffect(() => {
    if (isGone && document.activeElement === document.body) heading.current?.focus()
  }, [isGone])
  return heading
}

/**
 * Whether cards moved a moment ago: the button under a finger may be that of another request.
 * @param positions what decides where each card stands; undefined until they are first there
 */
function useMoved(positions: string | undefined): boolean {
  const [settled, setSettled] = useState(positions)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(positions), settled === undefined ? 0 : movedMs)
    return () => clearTimeout(timer)
  }, [positions])
  return settled !== undefined && settled !== positions
}

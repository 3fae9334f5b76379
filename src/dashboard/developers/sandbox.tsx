import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { formatInstant, formatPhone, formatXof, readAmount } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { advanceClockMutation, clockQuery, fundMutation } from '../operations.ts'
import { simulatorAddress } from '../page-facts.ts'
import { Field } from '../parts/field.tsx'
import { problemText } from '../refusals.ts'
import { useSteadyQuery } from '../steady-query.ts'
import { useOnce } from './use-once.ts'
import { useDeveloperWords } from './words.ts'

/** The tools of a sandbox: money, the clock, and numbers that play customers. */
export function SandboxScreen() {
  const words = useDeveloperWords()
  return (
    <>
      <p>
        <Link href="/developers">‹ {words.back}</Link>
      </p>
      <h1>{words.sandbox.title}</h1>
      <p>{words.sandbox.lead}</p>
      <div className="home">
        <div className="stack">
          <Fund />
          <Clock />
        </div>
        <Numbers />
      </div>
    </>
  )
}

function Fund() {
  const { sandbox: words } = useDeveloperWords()
  const common = useWords()
  const language = useLanguage()
  const [typed, type] = useState('100000')
  const [problem, setProblem] = useState<string>()
  const [balance, setBalance] = useState<number>()
  const [isSending, fund] = useOnce(fundMutation)
  const send = async (amount: number) => {
    const answer = await fund({ amount })
    if (!answer) return
    setProblem(problemText(answer.error, null, common))
    setBalance(answer.data?.sandboxFund ?? undefined)
  }
  const submit = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const amount = readAmount(typed)
    setProblem(amount === null ? words.wrongAmount : undefined)
    if (amount !== null) void send(amount)
  }
  return (
    <section className="card">
      <h2>{words.fund}</h2>
      <form onSubmit={submit}>
        <Field
          label={words.amount}
          value={typed}
          onValue={type}
          autoComplete="off"
          inputMode="numeric"
          problem={problem}
        />
        <button aria-disabled={isSending}>{words.fundSend}</button>
      </form>
      <p role="status">{balance === undefined ? '' : words.funded(formatXof(balance, language))}</p>
    </section>
  )
}

function Clock() {
  const { sandbox: words } = useDeveloperWords()
  const common = useWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const { data, again } = useSteadyQuery(clockQuery, {})
  const [problem, setProblem] = useState<string>()
  const [isMoved, setMoved] = useState(false)
  const [isSending, advance] = useOnce(advanceClockMutation)
  const move = async (by: string) => {
    const answer = await advance({ by })
    if (!answer) return
    setProblem(problemText(answer.error, null, common))
    setMoved(answer.error === undefined)
    again()
  }
  const time = data?.serviceStatus?.time
  return (
    <section className="card">
      <h2>{words.clock}</h2>
      {time && <p>{words.now(formatInstant(time, language, timeZone))}</p>}
      <p className="soft">{words.clockLead}</p>
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <p role="status">{isMoved ? words.moved : ''}</p>
      {Object.entries(words.steps).map(([by, name]) => (
        <button
          key={by}
          type="button"
          className="quiet"
          aria-disabled={isSending}
          onClick={() => void move(by)}
        >
          {name}
        </button>
      ))}
    </section>
  )
}

function Numbers() {
  const { sandbox: words } = useDeveloperWords()
  return (
    <section className="card">
      <h2>{words.numbers}</h2>
      <p className="soft">{words.numbersLead}</p>
      <dl className="facts">
        {Object.entries(words.outcomes).map(([number, outcome]) => (
          <div key={number}>
            <dt>{formatPhone(`+223${number}`)}</dt>
            <dd>{outcome}</dd>
          </div>
        ))}
      </dl>
      {simulatorAddress !== null && (
        <p className="bar">
          <a href={`${simulatorAddress}/phone`} target="_blank" rel="noreferrer">
            {words.phones}
          </a>
          <a href={simulatorAddress} target="_blank" rel="noreferrer">
            {words.allNumbers}
          </a>
        </p>
      )}
    </section>
  )
}

import { useClient } from '@urql/preact'
import { useState } from 'preact/hooks'
import { formatMoment } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { type VerifyLogQuery, verifyLogQuery } from '../operations.ts'
import { errorText } from '../refusals.ts'
import { useTeamWords } from './words.ts'

type Verdict = NonNullable<VerifyLogQuery['verifyAuditLog']>

/** Verifies the chain of the log step by step, and says how far it is. */
export function Verification() {
  const { verify: words } = useTeamWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const { isRunning, verdict, problem, verify } = useVerification()
  const count = new Intl.NumberFormat(language).format(verdict?.upTo ?? 0)
  const isOver = verdict !== undefined && (verdict.isComplete || !verdict.isIntact)
  return (
    <section className="card request">
      <h2>{words.title}</h2>
      <p className="soft">{words.lead}</p>
      <p role="status">
        {isRunning && words.progress(count)}
        {!isRunning && isOver && verdict.isIntact && words.intact(count)}
      </p>
      {verdict && !verdict.isIntact && (
        <p className="problem" role="alert">
          {words.broken(String(verdict.fault?.sequence ?? ''))}
        </p>
      )}
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      {isOver && verdict.isIntact && verdict.head !== null && (
        <p className="soft">
          {words.head} <code>{verdict.head}</code>
          {verdict.sealedAt && ` · ${formatMoment(verdict.sealedAt, language, timeZone)}`}
        </p>
      )}
      <button
        type="button"
        className="quiet"
        aria-disabled={isRunning}
        onClick={() => !isRunning && void verify()}
      >
        {words.start}
      </button>
    </section>
  )
}

function useVerification() {
  const words = useWords()
  const client = useClient()
  const [verdict, setVerdict] = useState<Verdict>()
  const [isRunning, run] = useState(false)
  const [problem, setProblem] = useState<string>()

  /** Verifies one part after the other, each from where the one before ended, also after a lost answer. */
  async function verify(): Promise<void> {
    run(true)
    setProblem(undefined)
    const isBegun = verdict !== undefined && verdict.isIntact && !verdict.isComplete
    if (!isBegun) setVerdict(undefined)
    let after = isBegun ? verdict.upTo : 0
    let step: Verdict | null | undefined
    do {
      const { data, error } = await client
        .query(verifyLogQuery, { after }, { requestPolicy: 'network-only' })
        .toPromise()
      step = data?.verifyAuditLog
      after = step?.upTo ?? after
      if (step) setVerdict(step)
      else setProblem(error ? errorText(error, words) : words.failure.unknown)
    } while (step?.isIntact && !step.isComplete)
    run(false)
  }
  return { isRunning, verdict, problem, verify }
}

import type { CombinedError } from '@urql/preact'
import { useEffect, useState } from 'preact/hooks'
import { useWords } from '../language.ts'
import { mode } from '../page-facts.ts'
import { codeOf, errorText } from '../refusals.ts'

/** The time after which a page that still loads says that the network is slow, in milliseconds. */
const slowAfterMs = 4_000

/** The content of a page while it loads. */
export function Loading() {
  const words = useWords()
  const [isSlow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), slowAfterMs)
    return () => clearTimeout(timer)
  }, [])
  return (
    <p role="status" className="soft">
      {isSlow ? words.loadingSlowly : words.loading}
    </p>
  )
}

/** The content of a page whose data did not come: the reason, a button, and the id for the support. */
export function Failure({ error, retry }: { error: CombinedError; retry: () => void }) {
  const words = useWords()
  const requestId = error.graphQLErrors[0]?.extensions['requestId']
  return (
    <section className="alert" role="alert">
      <p>{codeOf(error) === 'FORBIDDEN' ? words.failure.forbidden : errorText(error, words)}</p>
      {typeof requestId === 'string' && (
        <p className="soft">
          {words.failure.requestId} <code>{requestId}</code>
        </p>
      )}
      <button type="button" className="quiet" onClick={retry}>
        {words.failure.retry}
      </button>
    </section>
  )
}

/** The line above figures of an earlier moment, where the last read failed. */
export function Stale({ retry }: { retry: () => void }) {
  const words = useWords()
  return (
    <p className="alert wide" role="status">
      {words.failure.stale}{' '}
      <button type="button" className="link" onClick={retry}>
        {words.failure.retry}
      </button>
    </p>
  )
}

/** The first steps of an account without any payment. */
export function FirstSteps() {
  const words = useWords()
  return (
    <>
      <p>{words.home.empty}</p>
      <ul className="steps">
        {(mode === 'sandbox' ? words.home.firstStepsSandbox : words.home.firstSteps).map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ul>
    </>
  )
}

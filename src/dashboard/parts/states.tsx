import type { CombinedError } from '@urql/preact'
import { useEffect, useState } from 'preact/hooks'
import { useWords } from '../language.ts'
import { codeOf } from '../refusals.ts'

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
  const code = codeOf(error)
  const requestId = error.graphQLErrors[0]?.extensions['requestId']
  const text =
    error.networkError !== undefined
      ? words.failure.network
      : code === 'FORBIDDEN'
        ? words.failure.forbidden
        : (words.refusals[code as keyof typeof words.refusals] ?? words.failure.unknown)
  return (
    <section className="alert" role="alert">
      <p>{text}</p>
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

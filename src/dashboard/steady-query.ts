import type { AnyVariables, CombinedError, DocumentInput } from '@urql/preact'
import { useQuery } from '@urql/preact'
import { useEffect, useRef } from 'preact/hooks'
import { useLiveness } from './live.ts'
import { codeOf } from './refusals.ts'

/** The pause before a read that failed is tried again. */
const retryMs = 5_000

interface SteadyQuery<Data> {
  /** The last data that came. */
  data: Data | undefined
  /** The reason why the last read failed; the data are then those of an earlier one. */
  error: CombinedError | undefined
  again: () => void
}

/**
 * Reads a document, and keeps its last data where a later read fails: a page that shows the money must not
 * turn blank because the network was away for a moment. It reads again after a pause, and when changes arrive
 * again.
 */
export function useSteadyQuery<Data, Variables extends AnyVariables>(
  query: DocumentInput<Data, Variables>,
  variables: Variables,
): SteadyQuery<Data> {
  const [{ data, error, fetching }, read] = useQuery({
    query,
    variables,
    requestPolicy: 'cache-and-network',
  })
  const last = useRef<Data>()
  last.current = data ?? last.current
  const again = () => read({ requestPolicy: 'network-only' })
  const liveness = useLiveness()
  const hasFailed = error !== undefined && codeOf(error) !== 'FORBIDDEN' && !fetching
  useEffect(() => {
    if (!hasFailed) return undefined
    const timer = setTimeout(again, retryMs)
    return () => clearTimeout(timer)
  }, [hasFailed])
  useEffect(() => {
    if (hasFailed && liveness === 'live') again()
  }, [liveness])
  return { data: last.current, error, again }
}

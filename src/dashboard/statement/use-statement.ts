import { type CombinedError, useClient } from '@urql/preact'
import { useEffect, useMemo, useReducer } from 'preact/hooks'
import { useLiveness, useMoneyChanges } from '../live.ts'
import { codeOf } from '../refusals.ts'
import { type OpenedStatement, openReader, type StatementReader, unopened } from './read-lines.ts'

/** The pause before a read that failed is tried again. */
const retryMs = 5_000

interface ShownStatement extends OpenedStatement, Omit<StatementReader, 'end'> {
  isReading: boolean
  /** The reason why the last read failed; the lines are then those of an earlier one. */
  error: CombinedError | undefined
}

type Step = { opened: OpenedStatement } | { error: CombinedError } | 'begin'
type State = Pick<ShownStatement, 'isReading' | 'error'> & { opened: OpenedStatement }

function stateAfter(state: State, step: Step): State {
  if (step === 'begin') return { ...state, isReading: true }
  if ('error' in step) return { ...state, isReading: false, error: step.error }
  return { opened: step.opened, isReading: false, error: undefined }
}

/**
 * Reads the statement of a month page by page, and keeps it up to date while the month is running.
 * @param span the month; a component shows one alone
 */
export function useStatement(span: { from: string; to: string }, isRunning: boolean): ShownStatement {
  const client = useClient()
  const first = { opened: unopened, isReading: true, error: undefined }
  const [{ opened, isReading, error }, step] = useReducer(stateAfter, first)
  const reader = useMemo(
    () =>
      openReader(client, span, {
        onBegin: () => step('begin'),
        onRead: (read) => step({ opened: read }),
        onFail: (reason) => step({ error: reason }),
      }),
    [client],
  )
  useEffect(() => {
    void reader.readMore()
    return () => reader.end()
  }, [reader])
  useMoneyChanges(isRunning ? opened.asOf : null, () => void reader.refresh())
  const liveness = useLiveness()
  const mayRetry = error !== undefined && codeOf(error) !== 'FORBIDDEN'
  useEffect(() => {
    if (!mayRetry) return undefined
    const timer = setTimeout(() => void reader.refresh(), retryMs)
    return () => clearTimeout(timer)
  }, [error])
  useEffect(() => {
    if (mayRetry && liveness === 'live') void reader.refresh()
  }, [liveness])
  return { ...opened, ...reader, isReading, error }
}

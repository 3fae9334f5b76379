import { useMutation } from '@urql/preact'
import { useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { cancelBatchMutation, retryFailedMutation } from '../operations.ts'
import { Confirmation } from '../parts/confirmation.tsx'
import { problemText, refusalOf } from '../refusals.ts'
import type { Batch } from './present.ts'
import { usePayrollWords } from './words.ts'

/** The buttons that stop a payroll, or prepare another try of its failed payments. */
export function Actions({ batch, again }: { batch: Batch; again: () => void }) {
  const words = usePayrollWords()
  const common = useWords()
  const { mayPayMany } = useMe()
  const [, goTo] = useLocation()
  const [problem, setProblem] = useState<string>()
  const [{ fetching: isCancelling }, cancel] = useMutation(cancelBatchMutation)
  const [{ fetching: isRetrying }, retry] = useMutation(retryFailedMutation)
  if (!mayPayMany) return null
  const { id, status, failedCount, processedAt } = batch
  const stop = async () => {
    const { data, error } = await cancel({ id })
    const isOver = refusalOf(data?.cancelBatch)?.code === 'STATE_CONFLICT'
    setProblem(isOver ? words.cancelledBefore : problemText(error, data?.cancelBatch, common))
    again()
  }
  const tryAgain = async () => {
    const { data, error } = await retry({ id })
    const result = data?.retryFailed
    if (result?.__typename === 'BatchPayload' && result.batch)
      return goTo(`/payroll/${result.batch.databaseId}`)
    const isRetried = refusalOf(result)?.code === 'STATE_CONFLICT'
    setProblem(isRetried ? words.retriedBefore : problemText(error, result, common))
  }
  const hasEnded = processedAt !== null
  const cancelWords = words.cancel[status as keyof typeof words.cancel]
  return (
    <>
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      {hasEnded && failedCount > 0 && (
        <>
          <button type="button" aria-disabled={isRetrying} onClick={() => !isRetrying && void tryAgain()}>
            {words.retry(failedCount)}
          </button>
          <p className="soft">{words.retryHint}</p>
        </>
      )}
      {cancelWords && (
        <Confirmation
          key={status}
          name={cancelWords.name}
          isSending={isCancelling}
          onConfirm={() => void stop()}
        >
          {cancelWords.text}
        </Confirmation>
      )}
    </>
  )
}

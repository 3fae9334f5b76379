import { CombinedError, useClient } from '@urql/preact'
import { useState } from 'preact/hooks'
import { formatPhone, formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { type BatchRecipientsQuery, batchRecipientsQuery } from '../operations.ts'
import { Failure } from './states.tsx'
import { operatorLabel } from '../operator-label.ts'

/** The recipients of one page. */
const pageSize = 50

type Recipient = NonNullable<BatchRecipientsQuery['batch']>['recipients']['nodes'][number]

/** The recipients of a batch, which are read when the person opens them, page by page. */
export function BatchRecipients({ batchId, count }: { batchId: string; count: number }) {
  const words = useWords()
  const language = useLanguage()
  const client = useClient()
  const [recipients, setRecipients] = useState<readonly Recipient[]>([])
  const [next, setNext] = useState<string | null>('')
  const [isReading, setReading] = useState(false)
  const [error, setError] = useState<CombinedError>()

  async function readMore(): Promise<void> {
    if (isReading || next === null) return
    setReading(true)
    setError(undefined)
    const variables = { id: batchId, first: pageSize, ...(next !== '' && { after: next }) }
    const answer = await client
      .query(batchRecipientsQuery, variables, { requestPolicy: 'network-only' })
      .toPromise()
    setReading(false)
    const page = answer.data?.batch?.recipients
    if (!page) {
      setError(answer.error ?? new CombinedError({ networkError: new Error('empty') }))
      return
    }
    setRecipients([...recipients, ...page.nodes])
    setNext(page.pageInfo.hasNextPage ? page.pageInfo.endCursor : null)
  }

  return (
    <details onToggle={({ currentTarget }) => currentTarget.open && next === '' && void readMore()}>
      <summary>{words.approvals.recipients(count)}</summary>
      <ol className="rows">
        {recipients.map(({ id, name, account, paymentMethod, amount }) => (
          <li key={id}>
            <div>
              <strong>{name}</strong>
              <p className="soft">
                {formatPhone(account)} · {operatorLabel(paymentMethod)}
              </p>
            </div>
            <strong className="number">{formatXof(amount, language)}</strong>
          </li>
        ))}
      </ol>
      {error && <Failure error={error} retry={() => void readMore()} />}
      {next !== null && !error && (
        <button type="button" className="quiet" aria-disabled={isReading} onClick={() => void readMore()}>
          {isReading ? words.loading : words.payments.older}
        </button>
      )}
    </details>
  )
}

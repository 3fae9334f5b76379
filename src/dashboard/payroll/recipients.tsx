import { useState } from 'preact/hooks'
import { useLanguage } from '../language.ts'
import type { RecipientStatus } from '../operations.ts'
import type { Batch } from './present.ts'
import { RecipientList } from './recipient-list.tsx'
import { usePayrollWords } from './words.ts'

type Choice = 'all' | 'SUCCESS' | 'FAILED' | 'open' | 'CANCELLED'

const statusesOf: Readonly<Record<Choice, readonly RecipientStatus[] | null>> = {
  all: null,
  SUCCESS: ['SUCCESS'],
  FAILED: ['FAILED'],
  open: ['PENDING', 'PROCESSING'],
  CANCELLED: ['CANCELLED'],
}

/** The recipients of a payroll, all or those of one state, read again whenever the version changes. */
export function Recipients({ batch, version }: { batch: Batch; version: string }) {
  const words = usePayrollWords()
  const language = useLanguage()
  const number = new Intl.NumberFormat(language)
  const [chosen, choose] = useState<Choice | null>(null)
  const counts: Readonly<Record<Choice, number>> = {
    all: batch.recipientCount,
    FAILED: batch.failedCount,
    SUCCESS: batch.succeededCount,
    open: batch.pendingCount + batch.processingCount,
    CANCELLED: batch.cancelledCount,
  }
  const hasEnded = batch.processedAt !== null
  // A person has work with the failed ones.
  const choice = chosen ?? (hasEnded && batch.failedCount > 0 ? 'FAILED' : 'all')
  const shown = (Object.keys(counts) as Choice[]).filter((each) => counts[each] > 0 || each === choice)
  return (
    <section className="card" aria-label={words.recipients}>
      <h2>{words.recipients}</h2>
      {batch.status !== 'DRAFT' && (
        <div className="bar" role="group" aria-label={words.recipients}>
          {shown.map((each) => (
            <button
              key={each}
              type="button"
              className="quiet small"
              aria-pressed={each === choice}
              onClick={() => choose(each)}
            >
              {words.choices[each]} {number.format(counts[each])}
            </button>
          ))}
        </div>
      )}
      <RecipientList
        key={choice}
        batchId={batch.id}
        statuses={statusesOf[choice]}
        count={counts[choice]}
        version={version}
        hasStates={batch.status !== 'DRAFT'}
      />
    </section>
  )
}

import { type CombinedError, useClient } from '@urql/preact'
import { useEffect, useState } from 'preact/hooks'
import { formatPhone, formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { checkBatchMutation, type CheckBatchMutation, processBatchMutation } from '../operations.ts'
import { Facts } from '../parts/facts.tsx'
import { problemText, refusalOf } from '../refusals.ts'
import { Actions } from './actions.tsx'
import type { Batch } from './present.ts'
import { usePayrollWords, usePeople } from './words.ts'
import { operatorLabel } from '../operator-label.ts'

type Payload = Extract<CheckBatchMutation['processBatch'], { __typename: 'BatchPayload' }>
type Forecast = NonNullable<Payload['dryRun']>

interface DraftProps {
  batch: Batch
  /** The money that is there, in whole francs; null where it is not known. */
  available: number | null
  again: () => void
}

/** A draft: the effect that paying it would have, checked by the service, and the button that pays it. */
export function Draft({ batch, available, again }: DraftProps) {
  const words = usePayrollWords()
  const language = useLanguage()
  const draft = useDraft(batch, again)
  const { forecast, problem, isChecking, isSending } = draft
  const isAsShown = forecast !== null && isSame(forecast, batch)
  const missing = available === null ? 0 : batch.totalAmount - available
  const amount = formatXof(batch.totalAmount, language)
  const people = usePeople()(batch.recipientCount)
  return (
    <section className="card request" aria-label={words.draft.title}>
      <h2>{words.draft.title}</h2>
      {isChecking && <p role="status">{words.draft.wait}</p>}
      {draft.hasChanged && (
        <p className="problem" role="alert">
          {words.draft.hasChanged}
        </p>
      )}
      {forecast && <ForecastFacts forecast={forecast} />}
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      {problem && missing > 0 && (
        <p className="problem">{words.draft.shortBy(formatXof(missing, language))}</p>
      )}
      {isAsShown && !isChecking && (
        <button type="button" aria-disabled={isSending} onClick={() => !isSending && void draft.pay()}>
          {forecast.approvalRequired ? words.draft.request(amount) : words.draft.pay(amount, people)}
        </button>
      )}
      {!isChecking && (
        <button type="button" className="quiet" onClick={() => void draft.check()}>
          {words.draft.recheck}
        </button>
      )}
      <Actions batch={batch} again={again} />
    </section>
  )
}

/** The most numbers that a warning names. */
const numbersShownMax = 10

function listed(numbers: readonly string[]): string {
  const shown = numbers.slice(0, numbersShownMax).map(formatPhone).join(', ')
  return numbers.length > numbersShownMax ? `${shown}…` : shown
}

function ForecastFacts({ forecast }: { forecast: Forecast }) {
  const { draft: words } = usePayrollWords()
  const people = usePeople()
  const language = useLanguage()
  const { duplicates, unknownNumbers, operatorsDown, operators, availableAfter, fees } = forecast
  const warnings = [
    availableAfter < 0 && words.shortBy(formatXof(-availableAfter, language)),
    duplicates.length > 0 && words.duplicates(listed(duplicates.map(({ account }) => account))),
    unknownNumbers.length > 0 && words.unknownNumbers(listed(unknownNumbers)),
    operatorsDown.length > 0 && words.operatorsDown(operatorsDown.map(operatorLabel).join(', ')),
  ]
  return (
    <>
      {warnings.map(
        (warning) =>
          warning && (
            <p key={warning} className="problem">
              {warning}
            </p>
          ),
      )}
      <Facts
        facts={[
          [words.total, formatXof(forecast.totalAmount, language)],
          [words.fees, fees === 0 ? words.noFees : formatXof(fees, language)],
          [words.availableNow, formatXof(forecast.availableNow, language)],
          [words.availableAfter, formatXof(availableAfter, language)],
          ...operators.map(
            ({ paymentMethod, recipientCount, totalAmount }) =>
              [
                operatorLabel(paymentMethod),
                `${people(recipientCount)} · ${formatXof(totalAmount, language)}`,
              ] as const,
          ),
        ]}
      />
      {forecast.approvalRequired && <p>{words.needsApproval}</p>}
    </>
  )
}

interface DraftState {
  forecast: Forecast | null
  problem: string | undefined
  isChecking: boolean
  isSending: boolean
  /** Whether the draft was not paid because it changed since it was shown. */
  hasChanged: boolean
}

interface Contents {
  totalAmount: number
  recipientCount: number
}

/** Whether a draft is still as it was: its recipients stay, and others can only be added. */
function isSame(one: Contents, other: Contents): boolean {
  return one.totalAmount === other.totalAmount && one.recipientCount === other.recipientCount
}

/**
 * The pause before a changed draft is checked, in milliseconds: a click that was meant for the button before
 * the change must not meet the one after it.
 */
const changedPauseMs = 1_000

/** Checks a draft when it is shown and whenever it changed, and pays it as it was shown. */
function useDraft(batch: Batch, again: () => void) {
  const { id, totalAmount, recipientCount } = batch
  const words = useWords()
  const { draft: own } = usePayrollWords()
  const client = useClient()
  const [state, setState] = useState<DraftState>({
    forecast: null,
    problem: undefined,
    isChecking: true,
    isSending: false,
    hasChanged: false,
  })
  const change = (more: Partial<DraftState>) => setState((before) => ({ ...before, ...more }))

  function problemOf(error: CombinedError | undefined, result: object | null | undefined) {
    const code = refusalOf(result)?.code
    if (code === 'STATE_CONFLICT') return own.isOver
    if (code === 'INVALID_INPUT') return recipientCount === 0 ? own.empty : own.unconnected
    return problemText(error, result, words)
  }

  async function check(): Promise<void> {
    change({ isChecking: true, problem: undefined })
    const { data, error } = await client.mutation(checkBatchMutation, { id }).toPromise()
    const result = data?.processBatch
    const forecast = result?.__typename === 'BatchPayload' ? result.dryRun : null
    change({ isChecking: false, forecast, problem: problemOf(error, result) })
    if (!forecast || isSame(forecast, batch)) return
    change({ hasChanged: true })
    again()
  }

  async function pay(): Promise<void> {
    change({ isSending: true, problem: undefined, hasChanged: false })
    const sent = await send()
    change({ isSending: false, ...sent })
    again()
  }

  /** Pays the draft, if it still has the total that was shown. */
  async function send(): Promise<Pick<DraftState, 'problem'> | Pick<DraftState, 'hasChanged'>> {
    const shown = { id, expectedTotal: totalAmount }
    const { data, error } = await client.mutation(processBatchMutation, shown).toPromise()
    const result = data?.processBatch
    if (refusalOf(result)?.code === 'STATE_CONFLICT') return { hasChanged: true }
    return { problem: problemOf(error, result) }
  }

  useEffect(() => {
    if (state.forecast === null) {
      void check()
      return undefined
    }
    change({ isChecking: true, hasChanged: true })
    const timer = setTimeout(() => void check(), changedPauseMs)
    return () => clearTimeout(timer)
  }, [totalAmount, recipientCount])
  return { ...state, check, pay }
}

import { useEffect, useRef } from 'preact/hooks'
import { formatDeparture, formatPhone, formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import type { PayoutMeansQuery } from '../operations.ts'
import { Facts } from '../parts/facts.tsx'
import type { usePayout } from './use-payout.ts'
import { usePayoutWords } from './words.ts'
import { operatorLabel } from '../operator-label.ts'

interface CheckPayoutProps {
  payout: ReturnType<typeof usePayout>
  /** The money that is there, in whole francs; null where it is not known. */
  available: number | null
  operators: NonNullable<PayoutMeansQuery['operators']>
}

/** The second look at a payout, and the button that sends it. */
export function CheckPayout({ payout, available, operators }: CheckPayoutProps) {
  const { check: words, facts } = usePayoutWords()
  const { payment } = useWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const heading = useRef<HTMLHeadingElement>(null)
  const { step, order, problem } = payout
  // The button that had the focus is gone. A second Enter must not send the money.
  useEffect(() => heading.current?.focus(), [step])
  if (!order) return null
  const { payee, input } = order
  const scheduledAt = input.scheduledAt ?? null
  const written = formatXof(input.amount, language)
  const isSending = step === 'sending'
  const health = operators.find(({ paymentMethod }) => paymentMethod === payee.paymentMethod)?.disburse
  const isSlow = scheduledAt === null && health !== undefined && health !== 'OPERATIONAL'
  const first = scheduledAt === null ? words.send(written) : words.schedule(written)
  const after = available === null || scheduledAt !== null ? null : available - input.amount
  return (
    <>
      <h2 ref={heading} tabIndex={-1}>
        {step === 'unknown' ? words.unknownTitle : words.title}
      </h2>
      <p className="sum small">{written}</p>
      <Facts
        facts={[
          [facts.payee, payee.name !== null && <bdi>{payee.name}</bdi>],
          [facts.number, `${formatPhone(payee.phone)} · ${operatorLabel(payee.paymentMethod)}`],
          [facts.when, scheduledAt === null ? facts.now : formatDeparture(scheduledAt, language, timeZone)],
          [payment.reference, input.reference],
          [facts.available, after !== null && formatXof(available ?? 0, language)],
          [facts.after, after !== null && formatXof(after, language)],
        ]}
      />
      <p className="soft">{scheduledAt === null ? words.text : words.laterText}</p>
      {isSlow && <p className="problem">{words.slow(operatorLabel(payee.paymentMethod))}</p>}
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <button
        type="button"
        aria-disabled={isSending}
        // The second click of a double click on the button before it is no decision.
        onClick={({ detail }) => !isSending && detail < 2 && void payout.send()}
      >
        {isSending ? words.sending : step === 'unknown' ? words.retry : first}
      </button>
      {step === 'checking' && (
        <button type="button" className="quiet" onClick={payout.edit}>
          {words.change}
        </button>
      )}
    </>
  )
}

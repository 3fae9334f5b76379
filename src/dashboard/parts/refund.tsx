import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { type RefundStep, sentRefundOf, useRefund } from '../use-refund.ts'
import { Field } from './field.tsx'
import { operatorLabel } from '../operator-label.ts'

interface RefundProps {
  payment: { id: string; paymentMethod: string }
  /** The amount that can still be given back, in whole francs; 0 offers no refund. */
  left: number
  /** Called when the service has answered. */
  onAnswer: () => void
}

/** The button that gives a payment back, in full or in part, after a second look at the amount. */
export function Refund({ payment, left, onAnswer }: RefundProps) {
  const { refund: words } = useWords()
  const dialog = useRef<HTMLDialogElement>(null)
  const [round, setRound] = useState(0)
  const [step, setStep] = useState<RefundStep>(sentRefundOf(payment.id) ? 'unknown' : 'typing')
  const isOpen = step === 'sending' || step === 'unknown'
  const open = () => {
    // A refund whose outcome is unknown stays: a new one could pay a second time.
    if (!isOpen) setRound(round + 1)
    dialog.current?.showModal()
  }
  /** After the last refund the button that opened the dialog is gone, to which the focus would return. */
  const onClosed = () => {
    if (left <= 0) dialog.current?.closest('main')?.focus({ preventScroll: true })
  }
  return (
    <>
      {(left > 0 || isOpen) && (
        <button type="button" className="quiet" onClick={open}>
          {words.open}
        </button>
      )}
      <dialog ref={dialog} aria-labelledby="refund-title" onClose={onClosed}>
        <RefundForm
          key={round}
          payment={payment}
          left={left}
          onAnswer={onAnswer}
          onStep={setStep}
          onClose={() => dialog.current?.close()}
        />
      </dialog>
    </>
  )
}

interface RefundFormProps extends RefundProps {
  onStep: (step: RefundStep) => void
  onClose: () => void
}

function RefundForm({ payment, left, onAnswer, onStep, onClose }: RefundFormProps) {
  const { refund: words } = useWords()
  const refund = useRefund(payment.id, left)
  const { step } = refund
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    onStep(step)
    // The field or button that had the focus is gone. A second Enter must not send the money.
    if (step !== 'typing') heading.current?.focus()
  }, [step])
  return (
    <>
      <h2 id="refund-title" ref={heading} tabIndex={-1}>
        {words.titles[step]}
      </h2>
      {step === 'typing' && <Typing refund={refund} left={left} />}
      {(step === 'checking' || step === 'sending' || step === 'unknown') && (
        <Checking refund={refund} operator={operatorLabel(payment.paymentMethod)} onAnswer={onAnswer} />
      )}
      {step === 'over' && <p role="status">{refund.result}</p>}
      <button type="button" className="quiet" onClick={onClose}>
        {words.close}
      </button>
    </>
  )
}

type OpenRefund = ReturnType<typeof useRefund>

function Typing({
  refund: { typed, reason, problem, change, check },
  left,
}: {
  refund: OpenRefund
  left: number
}) {
  const { refund: words } = useWords()
  const language = useLanguage()
  const onSubmit = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    check()
  }
  return (
    <form onSubmit={onSubmit}>
      <Field
        label={words.amount}
        value={typed}
        onValue={(value) => change({ typed: value })}
        autoComplete="off"
        inputMode="numeric"
        hint={words.hint(formatXof(left, language))}
        problem={problem}
        isFocused
      />
      <Field
        label={words.reason}
        value={reason}
        onValue={(value) => change({ reason: value })}
        autoComplete="off"
        hint={words.reasonHint}
        maxLength={200}
      />
      <button type="submit">{words.next}</button>
    </form>
  )
}

interface CheckingProps {
  refund: OpenRefund
  operator: string
  onAnswer: () => void
}

function Checking({
  refund: { step, amount, reason, problem, change, send },
  operator,
  onAnswer,
}: CheckingProps) {
  const { refund: words } = useWords()
  const language = useLanguage()
  const written = formatXof(amount ?? 0, language)
  const isSending = step === 'sending'
  const onSend = async () => {
    if (await send()) onAnswer()
  }
  const again = step === 'unknown' ? words.retry : words.send(written)
  return (
    <>
      <p className="sum small">{written}</p>
      <p>{words.checkText(written, operator)}</p>
      {reason.trim() !== '' && <p className="soft">{reason}</p>}
      {step === 'unknown' && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <button
        type="button"
        aria-disabled={isSending}
        // The second click of a double click on the button before it is no decision.
        onClick={({ detail }) => !isSending && detail < 2 && void onSend()}
      >
        {isSending ? words.sending : again}
      </button>
      {step === 'checking' && (
        <button type="button" className="quiet" onClick={() => change({ step: 'typing' })}>
          {words.change}
        </button>
      )}
    </>
  )
}

import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { useWords } from '../language.ts'
import { Field } from './field.tsx'

interface RejectionProps {
  /** The name of the request. */
  name: string
  /** Its amount as the page writes it; '' where it has none. */
  amount: string
  isSending: boolean
  onOpen: () => void
  onSend: (reason: string) => Promise<void>
}

/** The button that rejects a request, with the reason that its author reads. */
export function Rejection({ name, amount, isSending, onOpen, onSend }: RejectionProps) {
  const { approvals, refund } = useWords()
  const dialog = useRef<HTMLDialogElement>(null)
  const [isOpen, open] = useState(false)
  const [reason, setReason] = useState('')
  const [problem, setProblem] = useState<string>()
  const close = () => dialog.current?.close()
  const send = async (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (isSending) return
    const written = reason.trim()
    setProblem(written === '' ? approvals.reasonMissing : undefined)
    if (written === '') return
    await onSend(written)
    close()
  }
  return (
    <>
      <button
        type="button"
        className="quiet"
        onClick={() => {
          open(true)
          onOpen()
          dialog.current?.showModal()
        }}
      >
        {approvals.reject}
      </button>
      <dialog ref={dialog} aria-label={approvals.rejectTitle(name)} onClose={() => open(false)}>
        <h2>{approvals.rejectTitle(name)}</h2>
        {amount && <p className="sum small">{amount}</p>}
        {isOpen && (
          <form onSubmit={(event) => void send(event)}>
            <Field
              label={approvals.reason}
              hint={approvals.reasonHint}
              value={reason}
              onValue={setReason}
              autoComplete="off"
              maxLength={200}
              problem={problem}
              isFocused
            />
            <button aria-disabled={isSending}>{approvals.rejectSend}</button>
          </form>
        )}
        <button type="button" className="quiet" onClick={close}>
          {refund.close}
        </button>
      </dialog>
    </>
  )
}

import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { useWords } from '../language.ts'

interface ConfirmationProps {
  /** The words of the button that opens the dialog, and of the one that confirms. */
  name: string
  /** The consequences, in words. */
  children: ComponentChildren
  isSending: boolean
  onConfirm: () => void
}

/** A button that acts only after the person read what follows, and confirmed it. */
export function Confirmation({ name, children, isSending, onConfirm }: ConfirmationProps) {
  const { refund } = useWords()
  const dialog = useRef<HTMLDialogElement>(null)
  const close = () => dialog.current?.close()
  return (
    <>
      <button type="button" className="quiet" onClick={() => dialog.current?.showModal()}>
        {name}
      </button>
      <dialog ref={dialog} aria-label={name}>
        <h2>{name}</h2>
        <p>{children}</p>
        <button
          type="button"
          aria-disabled={isSending}
          onClick={() => {
            close()
            if (!isSending) onConfirm()
          }}
        >
          {name}
        </button>
        <button type="button" className="quiet" onClick={close}>
          {refund.close}
        </button>
      </dialog>
    </>
  )
}

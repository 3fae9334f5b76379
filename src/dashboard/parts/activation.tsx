import { Confirmation } from './confirmation.tsx'

interface ActivationProps {
  isActive: boolean
  /** The words of the button that ends it, of what follows, and of the button that begins it again. */
  words: { end: string; endText: string; begin: string }
  isSending: boolean
  onChange: (isActive: boolean) => void
}

/** Ends the use of an object after a second look, or begins it again. */
export function Activation({ isActive, words, isSending, onChange }: ActivationProps) {
  if (isActive)
    return (
      <Confirmation name={words.end} isSending={isSending} onConfirm={() => onChange(false)}>
        {words.endText}
      </Confirmation>
    )
  return (
    <button
      type="button"
      className="quiet"
      aria-disabled={isSending}
      onClick={() => !isSending && onChange(true)}
    >
      {words.begin}
    </button>
  )
}

import { useEffect, useRef, useState } from 'preact/hooks'
import { useQuestionOnLeaving } from '../parts/leaving.ts'
import { useDeveloperWords } from './words.ts'

interface SecretProps {
  /** The names and the values that are shown once. */
  values: readonly (readonly [name: string, value: string])[]
  /** Called when the person has kept them. */
  onKept: () => void
}

/** Values that the service shows only once, each with a way to copy it. */
export function Secret({ values, onKept }: SecretProps) {
  const { secret: words } = useDeveloperWords()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  useQuestionOnLeaving(words.leave)
  return (
    <section className="card request" role="alert">
      <h2 ref={heading} tabIndex={-1}>
        {words.title}
      </h2>
      <p>{words.lead}</p>
      {values.map(([name, value]) => (
        <CopiedValue key={name} name={name} value={value} />
      ))}
      <button type="button" onClick={onKept}>
        {words.kept}
      </button>
    </section>
  )
}

function CopiedValue({ name, value }: { name: string; value: string }) {
  const words = useDeveloperWords()
  const [isCopied, setCopied] = useState<boolean>()
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(value)
      setCopied(true)
    } catch {
      // A page without a secure address may not write to the clipboard: the value can be marked by hand.
      setCopied(false)
    }
  }
  return (
    <div className="secret">
      <p className="soft">{name}</p>
      <p>
        <code>{value}</code>{' '}
        <button
          type="button"
          className="quiet small"
          aria-label={`${words.copy} : ${name}`}
          onClick={() => void copy()}
        >
          {words.copy}
        </button>
      </p>
      <p role="status">{isCopied === undefined ? '' : isCopied ? words.copied : words.notCopied}</p>
    </div>
  )
}

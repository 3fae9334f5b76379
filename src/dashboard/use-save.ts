import type { OperationResult } from '@urql/preact'
import { useRef, useState } from 'preact/hooks'
import { useWords } from './language.ts'
import { problemText, refusalOf } from './refusals.ts'
import { newKey } from './sent-money.ts'

/** The reason why a form was not saved: a field of it, or a problem in words, with the code of a refusal. */
export type Refused<Field extends string> = Field | { text: string; code: string | undefined }

/** The part of an answer that a form reads. */
interface Answer {
  databaseId?: number
  problems?: readonly { field: string }[]
}

/**
 * Saves the fields of a form.
 * @param fields the fields of the form under the names that the service has for them
 * @param send writes the fields; the service writes them once under the key
 * @param onSaved called with the id of the object in REST
 */
export function useSave<Input extends object, Field extends string>(
  fields: readonly Field[],
  send: (input: Input, key: string) => Promise<OperationResult>,
  onSaved: (databaseId: number) => void,
) {
  const words = useWords()
  const [isSending, setSending] = useState(false)
  const [refused, setRefused] = useState<Refused<Field> | null>(null)
  // Two clicks may come before the page is drawn again.
  const isUnderWay = useRef(false)
  // Fields whose answer was lost are sent again under the same key.
  const sent = useRef({ fields: '', key: '' })

  async function save(input: Input): Promise<void> {
    if (isUnderWay.current) return
    isUnderWay.current = true
    const written = JSON.stringify(input)
    if (sent.current.fields !== written) sent.current = { fields: written, key: newKey() }
    setSending(true)
    setRefused(null)
    const { data, error } = await send(input, sent.current.key)
    isUnderWay.current = false
    setSending(false)
    const [answer] = Object.values((data ?? {}) as Record<string, Answer | undefined>)
    const text = problemText(error, answer, words)
    if (text === undefined) return onSaved(answer?.databaseId ?? 0)
    // A field within others: `limits.addresses[0]`.
    const wrong = answer?.problems?.[0]?.field.split(/[.[]/) ?? []
    const field = fields.find((name) => wrong.includes(name))
    setRefused(field ?? { text, code: refusalOf(answer)?.code })
  }
  return { isSending, refused, save }
}

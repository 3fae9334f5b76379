import { type AnyVariables, type DocumentInput, type OperationResult, useClient } from '@urql/preact'
import { useRef, useState } from 'preact/hooks'
import { onceUnder } from '../client.ts'
import { newKey } from '../sent-money.ts'

/**
 * Sends a mutation that must not be carried out twice: neither by two presses at once, nor by a press after
 * an answer that was lost.
 * @returns whether it is under way, and a function that sends it; that one gives null where it is under way
 */
export function useOnce<Data, Variables extends AnyVariables>(mutation: DocumentInput<Data, Variables>) {
  const client = useClient()
  const [isSending, setSending] = useState(false)
  // Two presses may come before the page is drawn again.
  const isUnderWay = useRef(false)
  const sent = useRef({ variables: '', key: '' })

  async function send(variables: Variables): Promise<OperationResult<Data, Variables> | null> {
    if (isUnderWay.current) return null
    isUnderWay.current = true
    setSending(true)
    const written = JSON.stringify(variables)
    if (sent.current.variables !== written) sent.current = { variables: written, key: newKey() }
    const answer = await client.mutation(mutation, variables, onceUnder(sent.current.key)).toPromise()
    isUnderWay.current = false
    setSending(false)
    // After an answer, the same once more is meant as another one.
    if (!answer.error) sent.current = { variables: '', key: '' }
    return answer
  }
  return [isSending, send] as const
}

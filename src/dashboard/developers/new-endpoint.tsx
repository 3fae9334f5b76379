import { useClient } from '@urql/preact'
import { onceUnder } from '../client.ts'
import { registerEndpointMutation } from '../operations.ts'
import { useSave } from '../use-save.ts'
import { EndpointForm, type EndpointInput, endpointFields } from './endpoint-form.tsx'
import { useDeveloperWords } from './words.ts'

interface NewEndpointProps {
  /** Called with the secret that signs what is sent to the address. */
  onMade: (secret: string) => void
  /** Called where the address was refused: another window may have added the last one. */
  onRefused: () => void
}

/** Adds an address. */
export function NewEndpoint({ onMade, onRefused }: NewEndpointProps) {
  const { endpointForm: words } = useDeveloperWords()
  const client = useClient()
  const register = async (input: EndpointInput, key: string) => {
    const answer = await client.mutation(registerEndpointMutation, { input }, onceUnder(key)).toPromise()
    const result = answer.data?.registerWebhook
    if (result?.__typename === 'WebhookSecret') onMade(result.secret)
    else onRefused()
    return answer
  }
  const { isSending, refused, save } = useSave(endpointFields, register, () => {})
  return (
    <EndpointForm
      start={{ url: '', events: ['PAYMENT_RECEIVED', 'PAYMENT_FAILED'] }}
      send={words.add}
      isSending={isSending}
      refused={refused}
      onSend={(input) => void save(input)}
    />
  )
}

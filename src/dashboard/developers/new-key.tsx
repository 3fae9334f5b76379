import { useClient } from '@urql/preact'
import { useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import { onceUnder } from '../client.ts'
import { useMe } from '../me.ts'
import { type CreateApiKeyInput, createKeyMutation } from '../operations.ts'
import { useSave } from '../use-save.ts'
import { KeyForm, keyFields } from './key-form.tsx'
import { Secret } from './secret.tsx'
import { useDeveloperWords } from './words.ts'

interface Issued {
  key: string
  secret: string
  id: number
}

/** A new API key, and its secret, which is shown once. */
export function NewKeyScreen() {
  const words = useDeveloperWords()
  const { mayChangeSettings } = useMe()
  const [, goTo] = useLocation()
  const client = useClient()
  const [issued, setIssued] = useState<Issued>()
  const create = async (input: CreateApiKeyInput, key: string) => {
    const answer = await client.mutation(createKeyMutation, { input }, onceUnder(key)).toPromise()
    const result = answer.data?.createApiKey
    if (result?.__typename === 'IssuedApiKey')
      setIssued({ key: result.key, secret: result.secret, id: result.apiKey?.databaseId ?? 0 })
    return answer
  }
  const { isSending, refused, save } = useSave(keyFields, create, () => {})
  const isFull = refused !== null && typeof refused !== 'string' && refused.code === 'STATE_CONFLICT'
  return (
    <>
      <p>
        <Link href="/developers">‹ {words.back}</Link>
      </p>
      <h1>{words.keys.make}</h1>
      {issued ? (
        <Secret
          values={[
            [words.secret.key, issued.key],
            [words.secret.secret, issued.secret],
          ]}
          onKept={() => goTo(issued.id === 0 ? '/developers' : `/developers/keys/${issued.id}`)}
        />
      ) : (
        <section className="card request">
          {mayChangeSettings ? (
            <KeyForm
              isSending={isSending}
              refused={isFull ? { ...refused, text: words.keys.full } : refused}
              onSend={(input) => void save(input)}
            />
          ) : (
            <p>{words.form.mayNot}</p>
          )}
        </section>
      )}
    </>
  )
}

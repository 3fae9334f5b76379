import { useClient } from '@urql/preact'
import { onceUnder } from '../client.ts'
import { createLinkMutation, updateLinkMutation } from '../operations.ts'
import { useSave } from '../use-save.ts'
import { type LinkInput, linkFields } from './link-form.tsx'

/** Makes a link, or changes one. @param id the link that is changed; null for a new one */
export function useSaveLink(id: string | null, onSaved: (databaseId: number) => void) {
  const client = useClient()
  const send = (input: Partial<LinkInput>, key: string) =>
    id === null
      ? client.mutation(createLinkMutation, { input: { title: '', ...input } }, onceUnder(key)).toPromise()
      : client.mutation(updateLinkMutation, { id, input }).toPromise()
  return useSave(linkFields, send, onSaved)
}

import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { EventType } from '../operations.ts'
import { Field } from '../parts/field.tsx'
import type { Refused } from '../use-save.ts'
import { Choices } from './choices.tsx'
import { eventGroups, eventTypes } from './event-types.ts'
import { useDeveloperWords } from './words.ts'

export const endpointFields = ['url', 'events'] as const
type EndpointField = (typeof endpointFields)[number]

export interface EndpointInput {
  url: string
  events: EventType[]
}

interface EndpointFormProps {
  start: EndpointInput
  send: string
  isSending: boolean
  refused: Refused<EndpointField> | null
  onSend: (input: EndpointInput) => void
}

/** The form of an address that is notified, and of the events that it gets. */
export function EndpointForm({ start, send, isSending, refused, onSend }: EndpointFormProps) {
  const { endpointForm: words, groups, events } = useDeveloperWords()
  const [draft, setDraft] = useState(start)
  const [wrong, setWrong] = useState<EndpointField | null>(null)
  const given = wrong ?? (typeof refused === 'string' ? refused : null)
  const problemOf = (field: EndpointField) => (given === field ? words.wrong[field] : undefined)
  const choose = (chosen: readonly EventType[]) => setDraft({ ...draft, events: [...chosen] })
  const hasAll = draft.events.length === eventTypes.length
  const submit = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (isSending) return
    const url = draft.url.trim()
    const field = url === '' ? 'url' : draft.events.length === 0 ? 'events' : null
    setWrong(field)
    if (field === null) onSend({ ...draft, url })
  }
  return (
    <form onSubmit={submit}>
      <Field
        label={words.url}
        value={draft.url}
        onValue={(url) => setDraft({ ...draft, url })}
        autoComplete="off"
        inputMode="url"
        maxLength={2_048}
        problem={problemOf('url')}
      />
      <p>
        <strong>{words.events}</strong>{' '}
        <button type="button" className="quiet small" onClick={() => choose(hasAll ? [] : eventTypes)}>
          {hasAll ? words.nothing : words.all}
        </button>
      </p>
      {problemOf('events') && (
        <p className="problem" role="alert">
          {problemOf('events')}
        </p>
      )}
      {Object.entries(eventGroups).map(([group, types]) => (
        <Choices
          key={group}
          title={groups[group as keyof typeof groups]}
          options={types.map((type) => [type, events[type]])}
          chosen={draft.events}
          onChoose={choose}
        />
      ))}
      {refused !== null && typeof refused !== 'string' && (
        <p className="problem" role="alert">
          {refused.text}
        </p>
      )}
      <button aria-disabled={isSending}>{send}</button>
    </form>
  )
}

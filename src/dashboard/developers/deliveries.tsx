import { useMutation } from '@urql/preact'
import { useState } from 'preact/hooks'
import { formatInstant, formatMoment } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { type EndpointQuery, replayMutation, type WebhookDeliveryStatus } from '../operations.ts'
import { type Pages, PagesBar } from '../parts/pages.tsx'
import { SelectField } from '../parts/select-field.tsx'
import { problemText } from '../refusals.ts'
import { useDeveloperWords } from './words.ts'

/** An address with what was sent to it. */
type EndpointWithDeliveries = NonNullable<EndpointQuery['webhook']>

interface DeliveriesProps {
  webhook: EndpointWithDeliveries
  pages: Pages
  status: WebhookDeliveryStatus | ''
  onStatus: (status: WebhookDeliveryStatus | '') => void
  again: () => void
}

/** The deliveries to an address, the newest first, each with its attempts. */
export function Deliveries({ webhook, pages, status, onStatus, again }: DeliveriesProps) {
  const { deliveries: words, newer, older } = useDeveloperWords()
  const { nodes, pageInfo } = webhook.deliveries
  return (
    <section className="card">
      <h2>{words.title}</h2>
      <SelectField
        label={words.only}
        value={status}
        onValue={(next) => onStatus(next as WebhookDeliveryStatus | '')}
      >
        <option value="">{words.every}</option>
        {Object.entries(words.statuses).map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </SelectField>
      {nodes.length === 0 && <p>{words.none}</p>}
      <ul className="rows">
        {nodes.map((delivery) => (
          <DeliveryRow key={delivery.id} delivery={delivery} webhookId={webhook.id} again={again} />
        ))}
      </ul>
      <PagesBar pages={pages} pageInfo={pageInfo} words={{ newer, older }} />
    </section>
  )
}

type Delivery = EndpointWithDeliveries['deliveries']['nodes'][number]

interface DeliveryRowProps {
  delivery: Delivery
  webhookId: string
  again: () => void
}

function DeliveryRow({ delivery, webhookId, again }: DeliveryRowProps) {
  const { deliveries: words, events } = useDeveloperWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const { type, status, createdAt, nextAttemptAt, attemptsTotal, event } = delivery
  return (
    <li className="below">
      <strong>{type === 'TEST' ? words.sample : events[type]}</strong>{' '}
      <span className="state">{words.statuses[status]}</span>
      <p className="soft">
        {formatInstant(createdAt, language, timeZone)} · {words.attempts(attemptsTotal)}
        {nextAttemptAt !== null && ` · ${words.next(formatMoment(nextAttemptAt, language, timeZone))}`}
      </p>
      {delivery.attempts.length > 0 && <Attempts attempts={delivery.attempts} />}
      {event !== null && <Replay webhookId={webhookId} eventId={event.id} again={again} />}
    </li>
  )
}

function Attempts({ attempts }: Pick<Delivery, 'attempts'>) {
  const { deliveries: words } = useDeveloperWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  return (
    <details>
      <summary>{words.attempts(attempts.length)}</summary>
      {attempts.map(({ nth, at, durationMs, statusCode, error, answer }) => (
        <div key={nth}>
          <p className="soft">
            {words.attempt(nth, formatInstant(at, language, timeZone))} ·{' '}
            {error === null ? statusCode : words.errors[error]} ·{' '}
            {words.took(new Intl.NumberFormat(language).format(durationMs))}
          </p>
          {answer !== '' && <pre>{answer}</pre>}
        </div>
      ))}
    </details>
  )
}

/** Sends an event again, also one that was delivered. */
function Replay({ webhookId, eventId, again }: { webhookId: string; eventId: string; again: () => void }) {
  const { deliveries: words } = useDeveloperWords()
  const common = useWords()
  const [said, say] = useState<{ text: string; isProblem: boolean }>()
  const [{ fetching }, replay] = useMutation(replayMutation)
  const send = async () => {
    const { data, error } = await replay({ webhookId, events: { ids: [eventId] } })
    const problem = problemText(error, data?.replayEvents, common)
    say({ text: problem ?? words.replayed, isProblem: problem !== undefined })
    again()
  }
  return (
    <p>
      <button
        type="button"
        className="quiet small"
        aria-disabled={fetching}
        onClick={() => !fetching && void send()}
      >
        {words.replay}
      </button>{' '}
      <span role={said?.isProblem ? 'alert' : 'status'} className={said?.isProblem ? 'problem' : 'soft'}>
        {said?.text ?? ''}
      </span>
    </p>
  )
}

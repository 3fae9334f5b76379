import { type EventType, events } from '../../events/catalogue.ts'

/** The event as it is sent. A test event is not in the event log: it has an id of its own and no position. */
export interface SentEvent {
  /** `evt_12`, the same on every attempt, so that a receiver can detect a repetition. */
  id: string
  type: EventType | 'test'
  /** The data that the log keeps, frozen at the time of the event. */
  data: object
  /** The moment of the event, by the clock of the service. */
  occurredAt: Date
  merchantId: number
  /** Position in the merchant's log; null for a test. */
  position: bigint | null
}

/**
 * Makes the bytes that are signed and sent. They are the same on every attempt, because they depend only on
 * data that never changes.
 * @see docs/design/rules.md#webhook-endpoints, docs/design/events.md#deliveries,
 * docs/design/events.md#event-data
 */
export function webhookBody({ id, type, data, occurredAt, merchantId, position }: SentEvent): Buffer {
  const timestamp = occurredAt.toISOString()
  const sequence = position === null ? null : Number(position)
  const body = {
    id,
    event: type,
    data: webhookData(type, data),
    timestamp,
    merchant_id: merchantId,
    sequence,
  }
  return Buffer.from(JSON.stringify(body))
}

/** Selects the fields of an event that its entry of the catalogue names for webhooks, if they exist. */
export function webhookData(type: EventType | 'test', data: object): object {
  const fields = type === 'test' ? testFields : events[type].webhook
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = (data as Record<string, unknown>)[field]
      return value === undefined ? [] : [[field, value]]
    }),
  )
}

const testFields = ['webhook_id', 'message']

/** Formats the id of an event as merchants see it: `evt_12`. */
export function eventIdText(id: bigint): string {
  return `evt_${id}`
}

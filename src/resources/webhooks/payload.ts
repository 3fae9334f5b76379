import { type EventType, events } from '../../events/catalogue.ts'

/** What is sent of an event; of a test, which is none, under the delivery's own id and without a place. */
export interface SentEvent {
  /** `evt_12`, the same on every attempt: whoever has it already has this event. */
  id: string
  type: EventType | 'test'
  /** As the log keeps it, frozen at the event. */
  data: object
  /** Service time. */
  occurredAt: Date
  merchantId: number
  /** Place in the merchant's log; null of a test. */
  position: bigint | null
}

/**
 * The bytes that are signed and sent: the same on every attempt, for they are made of what never changes.
 * @see specification: Webhooks; decisions: Deliveries, Event data
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

/** What a webhook says of an event: the fields that its row of the catalogue names, where they are there. */
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

/** The id of an event for those outside: `evt_12`. */
export function eventIdText(id: bigint): string {
  return `evt_${id}`
}

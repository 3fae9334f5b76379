import { type EventType, events, type LogEvent } from './catalogue.ts'

/** The kinds of things whose events the log keeps together, by an index. */
const kinds = ['transaction', 'payout', 'batch'] as const

type Kind = (typeof kinds)[number]

/** The events that a reader of the log wants; the others are skipped. */
export interface EventFilter {
  types: ReadonlySet<EventType>
  /** For each named field of the data: the values, as text, of which the event has one. */
  data: Readonly<
    Partial<Record<`${Kind}_id` | 'payment_link_id' | 'reference' | 'status', readonly string[]>>
  >
}

/** Returns the types of the events about a kind of thing. */
export function typesAbout(kind: Kind): ReadonlySet<EventType> {
  return typesBy[kind]
}

function typesOf(kind: Kind): ReadonlySet<EventType> {
  const types = Object.keys(events) as EventType[]
  return new Set(types.filter((type) => events[type].about === kind))
}

const typesBy = { transaction: typesOf('transaction'), payout: typesOf('payout'), batch: typesOf('batch') }

/** Returns the filter for the changes of one thing. */
export function changesOf(kind: Kind, id: bigint | number): EventFilter {
  return { types: typesAbout(kind), data: { [`${kind}_id`]: [String(id)] } }
}

/** Whether a reader wants an event. In the table, `readWanted` decides alike. */
export function isWanted({ types, data }: EventFilter, event: LogEvent): boolean {
  if (!types.has(event.type)) return false
  const given = event.data as object as Partial<Record<string, string | number | null>>
  return Object.entries(data).every(([field, values]) => {
    const value = given[field]
    return value != null && values.includes(String(value))
  })
}

/**
 * Returns the one thing that all wanted events are about, as `event_origin.sql` names it: `transaction:12`.
 * @returns null where the filter names no such thing, or several
 */
export function originOf({ data }: EventFilter): string | null {
  const kind = kinds.find((each) => data[`${each}_id`]?.length === 1)
  return kind ? `${kind}:${data[`${kind}_id`]?.[0]}` : null
}

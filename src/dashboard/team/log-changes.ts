import type { AuditLogQuery } from '../operations.ts'

/** An entry of the log. */
export type Entry = NonNullable<AuditLogQuery['auditLog']>['nodes'][number]

type Snapshot = Readonly<Record<string, unknown>>

/** A field that a change wrote: its value before and after, null where it had none. */
export interface FieldChange {
  field: string
  was: unknown
  is: unknown
}

/** Returns the fields that an entry changed. */
export function changesOf(entry: Entry): FieldChange[] {
  const [old, made] = snapshotsOf(entry)
  const fields = new Set([...Object.keys(old), ...Object.keys(made)])
  return [...fields]
    .map((field) => ({ field, was: shown(old[field]), is: shown(made[field]) }))
    .filter(({ was, is }) => JSON.stringify(was) !== JSON.stringify(is))
}

function snapshotsOf({ before, after }: Entry): [before: Snapshot, after: Snapshot] {
  return [before ?? {}, after ?? {}]
}

/** Returns a value as it is compared: an empty one is none. */
function shown(value: unknown): unknown {
  const isEmpty = value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
  return isEmpty ? null : value
}

/** Returns the name that an object had after a change; undefined where the entry does not say it. */
export function nameIn(entry: Entry): string | undefined {
  const [old, made] = snapshotsOf(entry)
  const name = made['name'] ?? made['title'] ?? old['name'] ?? old['title']
  return typeof name === 'string' && name !== '' ? name : undefined
}

/** Whether the value of a field is the number of a member. */
export const isMember = (field: string): boolean => field === 'issued_to_id' || field === 'member_id'

/** Returns what an entry calls the members that it names: its author, its object, the values of fields. */
export function membersIn(entry: Entry): string[] {
  const ids = snapshotsOf(entry).flatMap((snapshot) =>
    Object.entries(snapshot).flatMap(([field, value]) =>
      isMember(field) ? [`member:${String(value)}`] : [],
    ),
  )
  return [entry.actor, entry.target, ...ids]
}

import type { PoolClient } from 'pg'
import { type Actor, actorOf, nameOf } from '../identity/callers/actor.ts'
import { locks } from '../database/locks.ts'
import { compositeType, type SqlConnection, sqlFunction } from '../database/sql-function.ts'

/** The channel by which a caller reached the service. */
export type Channel = 'rest' | 'graphql' | 'websocket' | 'terminal' | 'service'

/** The part of an audit entry that names the actor, the operation, and where the request came from. */
export interface Recording {
  merchantId: number
  /** `member:7`, `api_key:12`, or `platform` for the people who run the installation. */
  actor: string
  address: string | null
  requestId: string | null
  channel: Channel
  /** The name of the mutation or of the command. */
  operation: string
}

/** A recording as an argument of an SQL function, which writes the audit entry together with its change. */
export const recordingType = compositeType<Recording>('audit_recording', {
  merchantId: 'int',
  actor: 'text',
  address: 'text?',
  requestId: 'uuid?',
  channel: 'text',
  operation: 'text',
})

interface RecordingContext {
  actor: Actor | null
  clientAddress: string | null
  requestId: string
  channel: Channel
}

/**
 * Makes the recording of what the caller does.
 * @param who the member or key that the caller proved to be, if it is not signed in yet
 * @throws DomainError UNAUTHENTICATED if the context has no actor and `who` is absent
 */
export function recordingOf(
  ctx: RecordingContext,
  operation: string,
  who: Pick<Actor, 'merchantId' | 'memberId' | 'apiKeyId'> = actorOf(ctx),
): Recording {
  const { clientAddress: address, requestId, channel } = ctx
  return { merchantId: who.merchantId, actor: nameOf(who), address, requestId, channel, operation }
}

/** Makes the recording of a change that the platform makes: by its command line, or the service by itself. */
export function platformRecording(
  merchantId: number,
  operation: string,
  channel: Channel = 'terminal',
): Recording {
  return { merchantId, actor: 'platform', address: null, requestId: null, channel, operation }
}

/** The kind and id of the thing that an entry is about: `webhook:3`. */
type Target = readonly [kind: string, id: number | bigint | string]

type Snapshot = Readonly<Record<string, unknown>>

/** A change of one thing. If both snapshots are given, the entry keeps only the fields that differ. */
interface Change {
  target: Target
  before?: Snapshot | null | undefined
  after?: Snapshot | null | undefined
}

/**
 * Writes the entry of a change, in the transaction that makes it. If two snapshots do not differ, nothing has
 * changed, and no entry is written. Snapshots must contain no secrets, because they are kept even after the
 * thing itself is deleted.
 */
export async function recordChange(tx: SqlConnection, recording: Recording, change: Change): Promise<void> {
  const { target, before = null, after = null } = change
  const [was, is] = before && after ? differences(before, after) : [before, after]
  if (was && is && Object.keys(was).length + Object.keys(is).length === 0) return
  await writeChange(tx, { recording, target: target.join(':'), before: plain(was), after: plain(is) })
}

const writeChange = sqlFunction('record_change', {
  takes: { recording: recordingType, target: 'text', before: 'jsonb', after: 'jsonb' },
  gives: 'void',
})

/** Makes plain JSON of a snapshot: a bigint becomes a number, because JSON has no bigint. */
function plain(snapshot: Snapshot | null): unknown {
  const text = JSON.stringify(snapshot, (_name, part) => (typeof part === 'bigint' ? Number(part) : part))
  return JSON.parse(text)
}

function differences(before: Snapshot, after: Snapshot): [Snapshot, Snapshot] {
  const changed = (from: Snapshot, to: Snapshot) =>
    Object.fromEntries(
      Object.entries(from).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(to[name])),
    )
  return [changed(before, after), changed(after, before)]
}

/** The statements that read the snapshot of each kind of thing. */
const snapshots = {
  merchant: `SELECT name AS business_name, status, notification_email, payouts_require_approval,
    approval_threshold, approvals_required, approvals_cover_deposits, ip_whitelist, locale, time_zone,
    business_phone, business_address FROM merchant WHERE id = $2 AND id = $1`,
  member: `SELECT name, email, role, status, second_factor_at IS NOT NULL AS has_second_factor
    FROM team_member WHERE id = $2 AND merchant_id = $1`,
  api_key: `SELECT name, left(key, 8) AS prefix, scopes, version, expires_at, revoked_at, max_per_payment,
    max_per_day, payment_methods, addresses, issued_to_id FROM api_key WHERE id = $2 AND merchant_id = $1`,
  session: 'SELECT member_id, expires_at, revoked_at FROM session WHERE id = $2 AND merchant_id = $1',
  beneficiary: `SELECT name, account, payment_method, category, is_active
    FROM beneficiary WHERE id = $2 AND merchant_id = $1`,
  batch: `SELECT title, status, approval, recipient_count, total_amount, cancelled_count
    FROM batch WHERE id = $2 AND merchant_id = $1`,
  payment_link: `SELECT title, description, amount, url_slug, usage_limit, is_active, expires_at
    FROM payment_link WHERE id = $2 AND merchant_id = $1`,
  settings_change:
    'SELECT after AS changes, approval FROM settings_change WHERE id = $2 AND merchant_id = $1',
  webhook: `SELECT url, events, is_active, removed_at
    FROM webhook_endpoint WHERE id = $2 AND merchant_id = $1`,
} as const

type SnapshotKind = keyof typeof snapshots

/** Makes a change of one thing and writes its entry, with the snapshots before and after the change. */
export async function recordedChange<Result>(
  tx: PoolClient,
  recording: Recording,
  [kind, id]: readonly [SnapshotKind, number],
  work: () => Promise<Result>,
): Promise<Result> {
  // Two changes of one thing run one after the other: the second snapshots the result of the first.
  await tx.query('SELECT pg_advisory_xact_lock($1, $2)', [locks.auditedChange, id])
  const before = await snapshotOf(tx, recording, [kind, id])
  const result = await work()
  const after = await snapshotOf(tx, recording, [kind, id])
  await recordChange(tx, recording, { target: [kind, id], before, after })
  return result
}

/** Writes the entry of a thing that was just created. */
export async function recordMade(
  tx: PoolClient,
  recording: Recording,
  target: readonly [SnapshotKind, number],
): Promise<void> {
  await recordChange(tx, recording, { target, after: await snapshotOf(tx, recording, target) })
}

async function snapshotOf(
  tx: PoolClient,
  { merchantId }: Recording,
  [kind, id]: readonly [SnapshotKind, number],
): Promise<Snapshot | null> {
  const { rows } = await tx.query<{ snapshot: Snapshot }>({
    name: `snapshot_of_${kind}`,
    text: `SELECT to_jsonb(p) AS snapshot FROM (${snapshots[kind]}) AS p`,
    values: [merchantId, id],
  })
  return rows[0]?.snapshot ?? null
}

import type { Pool } from 'pg'
import { expect } from 'vitest'

// The words of the isolation matrix: the names that a stranger knows of a merchant, and the requests that try
// them.

/** Every name of a merchant or of its things. */
export interface KnownRows {
  apiKey: string
  apiSecret: string
  merchantId: number
  /** REST id of one of its payments. */
  id: string
  /** Global id of the same. */
  node: string
  cursor: string
  reference: string
  phone: string
  /** Sequence of an event of its log. */
  sequence: string
  /** An `Idempotency-Key` that it used, and the body that came with it. */
  idempotencyKey: string
  body: Record<string, unknown>
  /** Cursor of a line of its statement. */
  line: string
  /** Id of its API key. */
  keyId: string
  /** Global id of the same. */
  keyNode: string
  keyCursor: string
  /** REST id of one of its beneficiaries. */
  beneficiaryId: string
  /** Global id of the same. */
  beneficiaryNode: string
  beneficiaryCursor: string
  /** Name of the same. */
  beneficiary: string
  /** REST id of one of its payouts, to that beneficiary. */
  payoutId: string
  /** Global id of the same. */
  payoutNode: string
  payoutCursor: string
  payoutReference: string
  /** REST id of one of its batches. */
  batchId: string
  /** Global id of the same. */
  batchNode: string
  batchCursor: string
  /** Global id of a recipient of that batch. */
  recipientNode: string
  recipientCursor: string
  /** REST id of one of its payment links. */
  linkId: string
  /** Global id of the same. */
  linkNode: string
  linkCursor: string
  /** REST id of its endpoint, and the endpoint's address. */
  webhookId: string
  webhookUrl: string
  /** Global id of the same. */
  webhookNode: string
  webhookCursor: string
  /** Id of a delivery there, which is a cursor too, and its global id. */
  deliveryId: string
  deliveryNode: string
  /** Id of an event of its log. */
  eventId: string
  /** REST id of a member of its team. */
  memberId: string
  /** Global id of the same. */
  memberNode: string
  memberCursor: string
  memberEmail: string
  /** Id of a session of that member. */
  sessionId: string
  /** Id of a change of its settings that waits for approval. */
  settingsChangeId: string
  /** Cursor of an entry of its audit log. */
  auditCursor: string
}

/** Kinds of rows for which the test draws ids of no row. */
export type RowKind =
  | 'id'
  | 'person'
  | 'payout'
  | 'batch'
  | 'paid'
  | 'link'
  | 'hook'
  | 'sent'
  | 'member'
  | 'session'
  | 'noted'
  | 'change'

export interface IsolationRequest {
  /** A path below `/merchant/api`, or a GraphQL document. */
  method?: string
  path?: string
  /** A form is sent as it is. */
  body?: object | string
  headers?: Record<string, string>
  document?: string
  variables?: object
  /** A live stream: the answer is the events of a moment. */
  isStream?: true
}

/** @param other names of another merchant, or of nothing. @param own the caller's own names */
export type Probe = (other: KnownRows, own: KnownRows) => IsolationRequest

export interface OwnedRow {
  /** The reason why this input names nothing; then there is no attack. */
  harmless?: string
  attack?: Probe
  /** The name is itself the right to ask: every caller gets the same answer. */
  isCredential?: true
  /** A signed-in member asks, because no API token may. */
  byPerson?: true
  /** The request writes something for the caller. */
  isWrite?: true
}

export const graphql =
  (document: string, variables: (other: KnownRows, own: KnownRows) => object): Probe =>
  (other, own) => ({ document, variables: variables(other, own) })

export const get =
  (path: (other: KnownRows, own: KnownRows) => string): Probe =>
  (other, own) => ({ method: 'GET', path: path(other, own) })

/** An answer as it came. */
export interface ProbeReply {
  status: number
  text: string
}

/** An answer without the parts that are new in every answer, and without the name that was asked for. */
export function comparable({ status, text }: ProbeReply, named: KnownRows): string {
  const names = [
    named.node,
    named.reference,
    named.phone,
    named.idempotencyKey,
    named.beneficiary,
    named.beneficiaryNode,
    named.payoutNode,
    named.payoutReference,
    named.batchNode,
    named.recipientNode,
    named.linkNode,
    named.webhookUrl,
    named.webhookNode,
    named.deliveryNode,
    named.memberEmail,
  ]
  const unnamed = names.reduce((rest, name) => rest.replaceAll(name, '<named>'), text)
  return `${status} ${unnamed}`
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
    .replaceAll(/(?:mp|dp|po|rf)_[0-9a-f]{32}/g, '<reference>')
    .replaceAll(/whsec_[\w+/]{43}=/g, '<secret>')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/"remaining":\d+/g, '"remaining":"<less>"')
}

/**
 * Digests of all that is stored about a merchant, but for tables that only count or prove it, and for
 * `request_due`: a job of the service deletes its rows of requests that have ended.
 */
export async function digestOf(owner: Pool, merchantId: number): Promise<Record<string, string>> {
  const { rows } = await owner.query<{ name: string }>(
    `SELECT c.relname AS name
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'merchant_id'
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
       AND c.relname !~ '^(audit|transaction)_|^request_due$'`,
  )
  expect(rows.length).toBeGreaterThan(8)
  const digests: Record<string, string> = {}
  for (const { name } of rows) {
    const { rows: found } = await owner.query<{ digest: string }>(
      `SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) AS digest FROM ${name} t WHERE merchant_id = $1`,
      [merchantId],
    )
    digests[name] = found[0]?.digest ?? 'no rows'
  }
  return digests
}

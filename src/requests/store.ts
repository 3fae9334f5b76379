import type { Pool } from 'pg'
import { type Batches, shareStatement } from '../database/batch.ts'
import { limits } from '../shared/limits.ts'
import type { Provider } from '../shared/providers.ts'
import type { FailureReason } from '../operators/failure-reasons.ts'
import type { CallbackHint, OperatorHandle } from '../operators/operator.ts'
import type { OpenRequest } from './open-request.ts'

/** SQL for an interval in whole milliseconds. */
function msOf(interval: string): string {
  return `round(extract(epoch FROM ${interval}) * 1000)::float8`
}

/** The requests that a statement took (`taken`), each with what it is for. */
const readTaken = `SELECT r.id, r.merchant_id AS "merchantId",
    CASE WHEN r.payout_id IS NOT NULL THEN 'payout' WHEN r.recipient_id IS NOT NULL THEN 'recipient'
      WHEN r.kind = 'collect' THEN 'collection' ELSE 'deposit' END AS subject,
    coalesce(r.payout_id, r.recipient_id, r.transaction_id) AS "subjectId", r.provider, r.kind, r.amount,
    r.phone, r.handle
      || jsonb_build_object('correlationId', r.correlation_id, 'clientRef', r.correlation_id) AS handle,
    r.state, r.attempt, now() AS "claimedAt", r.check_count AS "checkCount",
    ${msOf('service_now() - r.created_at')} AS "ageMs",
    ${msOf('t.expires_at - service_now()')} AS "leftMs",
    coalesce(${msOf('service_now() - coalesce(t.expires_at, s.settled_at)')}, 0) AS "sinceOverMs",
    ${msOf('service_now() - coalesce(s.settled_at, r.created_at)')} AS "sinceSettledMs",
    ${msOf('now() - r.fence_until')} + ${limits.operatorFenceMs} AS "sinceSentMs",
    coalesce(t.request_data, p.request_data, '{}') AS request,
    coalesce(t.status::text, p.status::text, b.status::text) AS status,
    r.handle->>'claimed' AS claimed,
    ${msOf("service_now() - (r.handle->>'toldAt')::timestamptz")} AS "sinceToldMs",
    r.handle->>'turnedAway' AS "turnedAway", coalesce(b.is_withdrawn, false) AS "isWithdrawn",
    EXISTS (SELECT FROM deposit_approval a WHERE a.transaction_id = r.transaction_id) AS "isApproved"
  FROM taken r
  LEFT JOIN LATERAL (
    SELECT t.* FROM transaction t WHERE t.id = r.transaction_id AND t.merchant_id = r.merchant_id LIMIT 1
  ) t ON true
  LEFT JOIN LATERAL (
    SELECT p.* FROM payout p WHERE p.id = r.payout_id AND p.merchant_id = r.merchant_id LIMIT 1
  ) p ON true
  LEFT JOIN LATERAL (
    SELECT b.*, g.cancel_asked_at IS NOT NULL AS is_withdrawn
    FROM batch_recipient b JOIN batch g ON g.id = b.batch_id
    WHERE b.id = r.recipient_id AND b.merchant_id = r.merchant_id LIMIT 1
  ) b ON true
  CROSS JOIN LATERAL (SELECT coalesce(t.settled_at, p.settled_at, b.settled_at) AS settled_at) s`

/**
 * Takes requests that are due to be asked about, oldest first. Until `limits.operatorQueryIntervalMs` have
 * passed nobody else takes them, on whatever node; a taker that dies leaves them due again.
 */
export async function claimDue(pool: Pool, provider: Provider, take: number): Promise<OpenRequest[]> {
  const { rows } = await pool.query<OpenRequest>({
    name: 'claim_due',
    text: `WITH due AS MATERIALIZED (
        SELECT id FROM operator_request
        WHERE provider = $1 AND next_check_at <= service_now()
          AND (query_after IS NULL OR query_after <= now())
        ORDER BY next_check_at LIMIT $2 FOR UPDATE SKIP LOCKED
      ), taken AS (
        UPDATE operator_request r
        SET query_after = now() + $3 * interval '1 millisecond', check_count = r.check_count + 1,
          next_check_at = service_now() + $4 * interval '1 millisecond'
        FROM due WHERE r.id = due.id
        RETURNING r.*
      )
      ${readTaken}`,
    values: [provider, take, limits.operatorQueryIntervalMs, limits.operatorFenceMs],
  })
  return rows
}

/**
 * Takes the request of one transaction now. Null where it is over, or somebody asked less than three seconds
 * ago.
 */
export async function claimOne(pool: Pool, transactionId: bigint): Promise<OpenRequest | null> {
  const { rows } = await pool.query<OpenRequest>({
    name: 'claim_one',
    text: `WITH taken AS (
        UPDATE operator_request r
        SET query_after = now() + $2 * interval '1 millisecond', check_count = r.check_count + 1,
          next_check_at = service_now() + $3 * interval '1 millisecond'
        WHERE r.transaction_id = $1
          AND r.next_check_at IS NOT NULL AND (r.query_after IS NULL OR r.query_after <= now())
        RETURNING r.*
      )
      ${readTaken}`,
    values: [transactionId, limits.operatorQueryIntervalMs, limits.operatorFenceMs],
  })
  return rows[0] ?? null
}

/**
 * The fence: gives the right to send a request once more, to one caller, and only after the time in which an
 * earlier send may still arrive. Without it two nodes that both see "no record" would both send. While
 * payments out are halted nobody sends a disbursement, nor one of a batch of which enough are under way.
 * What an orphan of the operator has (`operator_orphan`) is neither sent nor given up: it becomes `accepted`,
 * so that it is only asked about.
 * @param request `attempt`, as the caller knows it: what it knows is worth nothing once there is another;
 *   `claimedAt`, when it came to know, by the database's clock: what was heard behind the fence says nothing
 *   of a send that arrived after
 * @param options.givesUp takes the right so that nobody sends: also while payments out are halted, but not of
 *   a disbursement while a restore waits to be accepted, because it may have been sent after the backup
 * @returns the number of this attempt; null where somebody else has the right, or nobody now
 */
export async function claimSend(
  pool: Pool,
  { id, attempt: known, claimedAt: since }: Pick<OpenRequest, 'id' | 'attempt' | 'claimedAt'>,
  { givesUp }: { givesUp: boolean } = { givesUp: false },
): Promise<number | null> {
  const { rows } = await pool.query<{ attempt: number; state: OpenRequest['state'] }>({
    name: 'claim_send',
    text: `UPDATE operator_request r
      SET state = CASE WHEN orphan.found THEN 'accepted' ELSE 'sending' END::operator_request_state,
        attempt = attempt + 1, fence_until = now() + $2 * interval '1 millisecond',
        accepted_at = CASE WHEN orphan.found THEN service_now() END,
        -- What an earlier send met says nothing of this one.
        handle = handle - 'turnedAway',
        next_check_at = CASE WHEN orphan.found THEN date_trunc('milliseconds', service_now())
          ELSE next_check_at END
      FROM (SELECT EXISTS (
        SELECT FROM operator_request o JOIN operator_orphan USING (correlation_id) WHERE o.id = $1
      ) AS found) AS orphan
      WHERE id = $1 AND attempt = $3 AND fence_until <= coalesce($4::timestamptz, now())
        AND state IN ('sending', 'unsent', 'doubt')
        AND (kind = 'collect' OR CASE WHEN $5
          THEN NOT EXISTS (SELECT FROM installation i WHERE i.restored_at IS NOT NULL)
          ELSE NOT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) END)
        -- What people approved does not begin while its merchant owes money, as a payout does not.
        AND (state <> 'unsent' OR $5 OR NOT EXISTS (
          SELECT FROM deposit_approval a JOIN merchant_balance b ON b.merchant_id = a.merchant_id
          WHERE a.transaction_id = r.transaction_id AND b.receivable > 0))
        AND (recipient_id IS NULL OR $5 OR has_place(id, recipient_id, $2, $6, $7))
      RETURNING attempt, state`,
    values: [
      id,
      limits.operatorFenceMs,
      known,
      since,
      givesUp,
      limits.disburseSyncDeadlineMs,
      limits.batchInFlightMax,
    ],
  })
  const [claimed] = rows
  return claimed?.state === 'sending' ? claimed.attempt : null
}

/** What was learnt about a request that goes on. */
export interface RequestNote {
  id: bigint
  /** The send that it tells of; proof that an earlier one never left says nothing of a later one. */
  attempt: number
  /** Null where nothing was learnt. */
  state: 'unsent' | 'accepted' | 'doubt' | null
  handle: Partial<OperatorHandle> & { turnedAway?: FailureReason }
  /** Until it is asked about, in service time; null asks no more. */
  nextCheckMs: number | null
  paymentUrl: string | null
}

/**
 * Notes what was learnt. What is over meanwhile stays over, and is asked about as late money is. What a
 * callback made due meanwhile stays due: the answer noted here may be older than the callback.
 */
export function noteRequest(batches: Batches, note: RequestNote): Promise<void> {
  return batches.run(noteMany, note)
}

const noteMany = shareStatement(async (pool: Pool, notes: readonly RequestNote[]): Promise<void[]> => {
  const missed = Map.groupBy(notes, ({ id }) => id)
  if (missed.size > 1) {
    for (const id of await writeNotes(pool, notes, 'SKIP LOCKED')) missed.delete(id)
  }
  await Promise.all(Array.from(missed.values(), (own) => writeNotes(pool, own, '')))
  return notes.map(() => undefined)
})

/**
 * Whoever waits for a request holds no other one: those who have it may wait, over others, for who waits for
 * those.
 * @param locked what becomes of a request that somebody has: it is waited for, or passed over
 * @returns the requests that were not passed over
 */
async function writeNotes(
  pool: Pool,
  notes: readonly RequestNote[],
  locked: '' | 'SKIP LOCKED',
): Promise<bigint[]> {
  const { rows } = await pool.query<{ id: bigint }>({
    name: locked ? 'note_many' : 'note_one',
    text: `WITH note AS (
        SELECT DISTINCT ON (id) *
        FROM unnest($1::bigint[], $2::smallint[], $3::operator_request_state[], $4::jsonb[], $5::bigint[],
          $6::text[])
          WITH ORDINALITY AS n (id, attempt, state, handle, next_ms, payment_url, place)
        -- Of several in one call the operator's word counts, else the last.
        ORDER BY id, state IS NOT DISTINCT FROM 'accepted' DESC, place DESC
      ), held AS MATERIALIZED (
        -- Locks in the order of settling, a transaction before its request: neither waits for the other.
        SELECT FROM note n JOIN operator_request r ON r.id = n.id
          JOIN transaction t ON t.id = r.transaction_id
        WHERE n.payment_url IS NOT NULL ORDER BY t.id FOR UPDATE OF t
      ), mine AS MATERIALIZED (
        SELECT r.id FROM note n JOIN operator_request r ON r.id = n.id
        WHERE (SELECT count(*) FROM held) >= 0 FOR NO KEY UPDATE OF r ${locked}
      ), noted AS (
        UPDATE operator_request r
        SET state = CASE WHEN n.state IS NULL OR r.state IN ('refused', 'closed') THEN r.state
              WHEN n.next_ms IS NULL THEN 'closed'
              WHEN r.state = 'accepted' OR (n.state = 'unsent' AND n.attempt <> r.attempt) THEN r.state
              ELSE n.state END,
          handle = r.handle || n.handle,
          accepted_at = coalesce(r.accepted_at, CASE WHEN n.state = 'accepted' THEN service_now() END),
          -- Nothing of an unsent request can still arrive: it may be sent again at once.
          fence_until = CASE WHEN n.state = 'unsent' AND n.attempt = r.attempt THEN now()
            ELSE r.fence_until END,
          -- By the time of this moment: the callback may have come while this statement waited.
          next_check_at = CASE
              WHEN r.next_check_at <= service_now() + (clock_timestamp() - now()) THEN r.next_check_at
              -- Over, and not so at its operator: late money is real.
              WHEN n.state IS NOT NULL AND n.next_ms IS NOT NULL AND r.state IN ('refused', 'closed')
              THEN service_now() + $7 * interval '1 millisecond'
              ELSE service_now() + n.next_ms * interval '1 millisecond' END
        FROM note n WHERE r.id = n.id AND r.state <> 'settled' AND r.id IN (SELECT id FROM mine)
        RETURNING r.transaction_id, n.payment_url
      ), shown AS (
        UPDATE transaction t SET payment_url = noted.payment_url
        FROM noted WHERE t.id = noted.transaction_id AND noted.payment_url IS NOT NULL
      )
      SELECT id FROM mine`,
    values: [
      notes.map((n) => n.id),
      notes.map((n) => n.attempt),
      notes.map((n) => n.state),
      notes.map((n) => JSON.stringify(n.handle)),
      notes.map((n) => n.nextCheckMs),
      notes.map((n) => n.paymentUrl),
      limits.lateCheckMs,
    ],
  })
  return rows.map(({ id }) => id)
}

/**
 * Says when a request that is settled is asked about again; null asks no more. What a callback made due
 * meanwhile stays due, and what was reversed is over.
 */
export async function watchRequest(pool: Pool, id: bigint, nextMs: number | null): Promise<void> {
  await pool.query({
    name: 'watch_request',
    text: `UPDATE operator_request r
      SET next_check_at = CASE WHEN NOT EXISTS (
            SELECT FROM movement m
            WHERE m.cause = coalesce('transaction:' || r.transaction_id, 'payout:' || r.payout_id,
                'recipient:' || r.recipient_id)
              AND m.step IN ('reverse', 'shortfall'))
          THEN service_now() + $2 * interval '1 millisecond' END
      WHERE r.id = $1 AND r.state = 'settled'
        AND r.next_check_at > service_now() + (clock_timestamp() - now())`,
    values: [id, nextMs],
  })
}

/** A callback that names a request of ours. */
export interface CallbackRecord {
  provider: Provider
  dedupeKey: string
  body: string
  /** The request's id from the address; null where `correlationId` names it. */
  requestId: bigint | null
  correlationId: string | null
  says: CallbackHint['says']
}

/**
 * Keeps a callback, once, and makes its request due: only a query decides what it meant.
 * @returns whether it was new, and the request that is due now (null where it names none of ours)
 */
export async function recordCallback(
  pool: Pool,
  callback: CallbackRecord,
): Promise<{ isNew: boolean; requestId: bigint | null }> {
  const { rows } = await pool.query<{ isNew: boolean; requestId: bigint | null }>({
    name: 'record_callback',
    text: `WITH named AS (
        -- Two lookups that an index serves in any plan; with OR a generic plan reads the whole table.
        SELECT id, merchant_id FROM operator_request
        WHERE id = $4::bigint AND provider = $1 AND correlation_id = coalesce($5::uuid, correlation_id)
        UNION ALL
        SELECT id, merchant_id FROM operator_request
        WHERE $4::bigint IS NULL AND correlation_id = $5::uuid AND provider = $1
      ), kept AS (
        INSERT INTO operator_callback (merchant_id, request_id, provider, dedupe_key, body)
        SELECT (SELECT merchant_id FROM named), (SELECT id FROM named), $1, $2, $3
        ON CONFLICT (provider, dedupe_key) DO NOTHING RETURNING request_id
      ), due AS (
        UPDATE operator_request r
        SET next_check_at = date_trunc('milliseconds', service_now()),
          handle = r.handle || jsonb_build_object('claimed', $6::text, 'toldAt', service_now())
        -- What is settled is asked about only where the callback says something else.
        FROM kept WHERE r.id = kept.request_id AND (r.state <> 'settled' OR $6 <> 'settled')
      )
      SELECT EXISTS (SELECT FROM kept) AS "isNew", (SELECT id FROM named) AS "requestId"`,
    values: [
      callback.provider,
      callback.dedupeKey,
      callback.body,
      callback.requestId,
      callback.correlationId,
      callback.says,
    ],
  })
  return rows[0] ?? { isNew: false, requestId: null }
}

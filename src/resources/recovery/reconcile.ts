import type { Pool } from 'pg'
import type { StatementLine } from '../../operators/operator.ts'
import type { Provider } from '../../shared/providers.ts'
import { isNotBegun } from './orphans.ts'
import type { DayOfStatement } from './statements.ts'

/** What comparing the operators' statements with the records found. */
export interface Reconciled {
  /** Lines that our records have, and have ended as. */
  known: number
  /** Lines of requests that are open here: they are asked about, and waited for. */
  openRequestIds: bigint[]
  /** Lines of payments out that have not begun here: they are asked about then, and never sent. */
  notBegun: number
  /** Lines that our records do not have. */
  orphans: number
  /** Lines whose amount is another one than on record. */
  differing: { provider: Provider; operatorRef: string; said: bigint; recorded: bigint }[]
}

export function nothingReconciled(): Reconciled {
  return { known: 0, openRequestIds: [], notBegun: 0, orphans: 0, differing: [] }
}

const linesAtOnce = 500
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A movement of money as a statement has it, and the identity under which we asked for it. */
interface Movement {
  line: StatementLine
  kind: 'collect' | 'disburse' | 'reverse'
  /** Of a reversal: that of the movement which it takes back. */
  identity: string | null
}

/**
 * Compares a day of a statement with the records, and adds what it finds to `sum`. A request that is open
 * here becomes `accepted` and due: the operator has it, so it is asked about and never sent again. What the
 * records lack becomes an orphan, once, however often a day is read.
 */
export async function reconcileDay(
  pool: Pool,
  { provider, day, lines }: DayOfStatement,
  sum: Reconciled,
): Promise<void> {
  const movements = movementsOf(lines)
  for (let at = 0; at < movements.length; at += linesAtOnce) {
    await reconcileSome(pool, { provider, day, movements: movements.slice(at, at + linesAtOnce) }, sum)
  }
}

/** Fees and transfers are none of ours. */
function movementsOf(lines: readonly StatementLine[]): Movement[] {
  const byRef = new Map(lines.map((line) => [line.operatorRef, identityOf(line)]))
  return lines.flatMap((line): Movement[] => {
    if (line.type === 'collect' || line.type === 'disburse')
      return [{ line, kind: line.type, identity: identityOf(line) }]
    if (line.type !== 'reversal') return []
    return [{ line, kind: 'reverse', identity: byRef.get(line.originalRef ?? '') ?? null }]
  })
}

function identityOf({ correlationId, clientRef }: StatementLine): string | null {
  const found = [correlationId, clientRef].find((text) => text !== undefined && uuid.test(text))
  return found?.toLowerCase() ?? null
}

interface Match {
  place: number
  requestId: bigint | null
  state: string | null
  recorded: bigint | null
  isReversed: boolean
  isNotBegun: boolean
}

async function reconcileSome(
  pool: Pool,
  { provider, day, movements }: { provider: Provider; day: string; movements: readonly Movement[] },
  sum: Reconciled,
): Promise<void> {
  const matches = await findMatches(pool, provider, movements)
  const due: bigint[] = []
  const unknown: Movement[] = []
  for (const [place, movement] of movements.entries()) {
    const match = matches.get(place)
    const { line, kind } = movement
    if (match?.requestId == null) {
      if (match?.isNotBegun) sum.notBegun += 1
      else sum.orphans += 1
      unknown.push(movement)
    } else if (isKnown(match, kind)) {
      sum.known += 1
      const recorded = match.recorded ?? line.amount
      if (kind !== 'reverse' && recorded !== line.amount)
        sum.differing.push({ provider, operatorRef: line.operatorRef, said: line.amount, recorded })
    } else {
      due.push(match.requestId)
      if (openStates.has(match.state ?? '')) sum.openRequestIds.push(match.requestId)
    }
  }
  await makeDue(pool, due)
  await keepOrphans(pool, { provider, day, movements: unknown })
}

const openStates: ReadonlySet<string> = new Set(['sending', 'unsent', 'accepted', 'doubt'])

function isKnown({ state, isReversed }: Match, kind: Movement['kind']): boolean {
  return state === 'settled' && (kind !== 'reverse' || isReversed)
}

async function findMatches(
  pool: Pool,
  provider: Provider,
  movements: readonly Movement[],
): Promise<ReadonlyMap<number, Match>> {
  const { rows } = await pool.query<Match>(
    `SELECT i.place::int - 1 AS place, r.id AS "requestId", r.state,
       coalesce(t.settled_amount, r.amount) AS recorded,
       EXISTS (SELECT FROM movement m
         WHERE m.cause = coalesce('transaction:' || r.transaction_id, 'payout:' || r.payout_id,
             'recipient:' || r.recipient_id)
           AND m.step IN ('reverse', 'shortfall')) AS "isReversed",
       r.id IS NULL AND ${isNotBegun('i.identity')} AS "isNotBegun"
     FROM unnest($1::uuid[]) WITH ORDINALITY AS i (identity, place)
     LEFT JOIN operator_request r ON r.correlation_id = i.identity AND r.provider = $2
     LEFT JOIN LATERAL (SELECT t.settled_amount FROM transaction t
       WHERE t.id = r.transaction_id AND t.merchant_id = r.merchant_id) t ON true
     WHERE i.identity IS NOT NULL`,
    [movements.map(({ identity }) => identity), provider],
  )
  return new Map(rows.map((row) => [row.place, row]))
}

async function makeDue(pool: Pool, requestIds: readonly bigint[]): Promise<void> {
  await pool.query(
    `WITH mine AS MATERIALIZED (
       SELECT r.id FROM operator_request r WHERE r.id = ANY ($1) ORDER BY r.id FOR NO KEY UPDATE
     )
     UPDATE operator_request r
     SET state = CASE WHEN r.state IN ('sending', 'unsent', 'doubt') THEN 'accepted' ELSE r.state END,
       accepted_at = coalesce(r.accepted_at, service_now()), next_check_at = service_now(), query_after = NULL
     FROM mine WHERE r.id = mine.id`,
    [requestIds],
  )
}

async function keepOrphans(
  pool: Pool,
  { provider, day, movements }: { provider: Provider; day: string; movements: readonly Movement[] },
): Promise<void> {
  await pool.query(
    `INSERT INTO operator_orphan (provider, kind, correlation_id, operator_ref, client_ref, amount,
       counterparty, posted_at, statement_day)
     SELECT $1, i.kind, i.identity, i.operator_ref, i.client_ref, i.amount, i.counterparty, i.posted_at, $2
     FROM unnest($3::text[], $4::uuid[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::timestamptz[])
       AS i (kind, identity, operator_ref, client_ref, amount, counterparty, posted_at)
     ON CONFLICT (provider, operator_ref, kind) DO NOTHING`,
    [
      provider,
      day,
      movements.map(({ kind }) => kind),
      movements.map(({ identity, kind }) => (kind === 'reverse' ? null : identity)),
      movements.map(({ line }) => line.operatorRef),
      movements.map(({ line }) => line.clientRef ?? null),
      movements.map(({ line }) => line.amount),
      movements.map(({ line }) => line.counterparty ?? null),
      movements.map(({ line }) => line.postedAt),
    ],
  )
}

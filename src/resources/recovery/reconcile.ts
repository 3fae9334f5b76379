import { sqlFunction, sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import type { OperatorStatementLine } from '../../operators/operator.ts'
import type { Provider } from '../../shared/providers.ts'
import { isNotBegun } from './orphans.ts'
import type { DayOfStatement } from './statements.ts'

/** The result of the comparison of the operators' statements with the database. */
export interface Reconciled {
  /** Number of lines whose requests are settled in the database. */
  known: number
  /**
   * Open requests that a line names: the service asks about them, and the acceptance waits for the answers.
   */
  openRequestIds: bigint[]
  /**
   * Number of lines for payments that the restored database has not begun: when such a payment begins, the
   * service asks the operator about it and never sends it.
   */
  notBegun: number
  /** Number of lines that the database lacks, with those that were found before. */
  orphans: number
  /** Lines with another amount than in the database. */
  differing: { provider: Provider; operatorRef: string; said: bigint; recorded: bigint }[]
}

export function nothingReconciled(): Reconciled {
  return { known: 0, openRequestIds: [], notBegun: 0, orphans: 0, differing: [] }
}

const linesAtOnce = 500
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A transfer of money in a statement, with the identity under which the operator was asked for it. */
interface StatedTransfer {
  line: OperatorStatementLine
  kind: 'collect' | 'disburse' | 'reverse'
  /** The identity; for a reversal, the identity of the transfer that it takes back. Null: not known. */
  identity: string | null
}

/**
 * Compares a day of a statement with the database, and adds the result to `sum`. An open request becomes
 * `accepted` and due: the operator has it, so the service asks about it and never sends it again. A transfer
 * that the database lacks becomes one orphan, even if the day is read several times.
 */
export async function reconcileDay(
  pool: Pool,
  { provider, day, lines }: DayOfStatement,
  sum: Reconciled,
): Promise<void> {
  const transfers = statedTransfersOf(lines)
  for (let at = 0; at < transfers.length; at += linesAtOnce) {
    await reconcileSome(pool, { provider, day, transfers: transfers.slice(at, at + linesAtOnce) }, sum)
  }
}

/** Selects the payments and reversals of a statement, without its fees and other transfers. */
function statedTransfersOf(lines: readonly OperatorStatementLine[]): StatedTransfer[] {
  const byRef = new Map(lines.map((line) => [line.operatorRef, identityOf(line)]))
  return lines.flatMap((line): StatedTransfer[] => {
    if (line.type === 'collect' || line.type === 'disburse')
      return [{ line, kind: line.type, identity: identityOf(line) }]
    if (line.type !== 'reversal') return []
    return [{ line, kind: 'reverse', identity: byRef.get(line.originalRef ?? '') ?? null }]
  })
}

/** Returns the identity under which the operator was asked for a transfer; null where the line has none. */
export function identityOf({ correlationId, clientRef }: OperatorStatementLine): string | null {
  const found = [correlationId, clientRef].find((text) => text !== undefined && uuid.test(text))
  return found?.toLowerCase() ?? null
}

interface Match {
  index: number
  requestId: bigint | null
  state: string | null
  recorded: bigint | null
  isReversed: boolean
  isNotBegun: boolean
}

async function reconcileSome(
  pool: Pool,
  { provider, day, transfers }: { provider: Provider; day: string; transfers: readonly StatedTransfer[] },
  sum: Reconciled,
): Promise<void> {
  const matches = await findMatches(pool, provider, transfers)
  const due: bigint[] = []
  const unknown: StatedTransfer[] = []
  for (const [index, transfer] of transfers.entries()) {
    const match = matches.get(index)
    const { line, kind } = transfer
    if (match?.requestId == null) {
      if (match?.isNotBegun) sum.notBegun += 1
      else sum.orphans += 1
      unknown.push(transfer)
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
  await makeDue(pool, { requestIds: due })
  await keepOrphans(pool, { provider, day, transfers: unknown })
}

const openStates: ReadonlySet<string> = new Set(['sending', 'unsent', 'accepted', 'doubt'])

function isKnown({ state, isReversed }: Match, kind: StatedTransfer['kind']): boolean {
  return state === 'settled' && (kind !== 'reverse' || isReversed)
}

async function findMatches(
  pool: Pool,
  provider: Provider,
  transfers: readonly StatedTransfer[],
): Promise<ReadonlyMap<number, Match>> {
  const { rows } = await pool.query<Match>(
    `SELECT i.index::int - 1 AS index, r.id AS "requestId", r.state,
       coalesce(t.settled_amount, r.amount) AS recorded,
       EXISTS (SELECT FROM ledger_entry m
         WHERE m.origin = coalesce('transaction:' || r.transaction_id, 'payout:' || r.payout_id,
             'recipient:' || r.recipient_id)
           AND m.step IN ('reverse', 'shortfall')) AS "isReversed",
       r.id IS NULL AND ${isNotBegun('i.identity')} AS "isNotBegun"
     FROM unnest($1::uuid[]) WITH ORDINALITY AS i (identity, index)
     LEFT JOIN operator_request r ON r.correlation_id = i.identity AND r.provider = $2
     LEFT JOIN LATERAL (SELECT t.settled_amount FROM transaction t
       WHERE t.id = r.transaction_id AND t.merchant_id = r.merchant_id) t ON true
     WHERE i.identity IS NOT NULL`,
    [transfers.map(({ identity }) => identity), provider],
  )
  return new Map(rows.map((row) => [row.index, row]))
}

/** Makes the requests due that operators executed, so that the service asks about them next. */
const makeDue = sqlFunction('make_requests_due', { takes: { requestIds: 'bigint[]' }, gives: 'void' })

async function keepOrphans(
  pool: Pool,
  { provider, day, transfers }: { provider: Provider; day: string; transfers: readonly StatedTransfer[] },
): Promise<void> {
  const orphans = transfers.map(({ kind, identity, line }) => ({
    kind,
    identity: kind === 'reverse' ? null : identity,
    operatorRef: line.operatorRef,
    clientRef: line.clientRef,
    amount: line.amount,
    counterparty: line.counterparty,
    postedAt: line.postedAt,
  }))
  await insertOrphans(pool, orphans, { operator: provider, statementDay: day })
}

const insertOrphans = sqlFunctionOfMany('keep_orphans', {
  each: {
    kind: 'text',
    identity: 'uuid?',
    operatorRef: 'text',
    clientRef: 'text?',
    amount: 'bigint',
    counterparty: 'text?',
    postedAt: 'timestamptz',
  },
  takes: { operator: 'provider', statementDay: sqlType<string>('date') },
  gives: 'void',
})

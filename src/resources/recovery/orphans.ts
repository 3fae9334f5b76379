import { sqlFunction } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { DomainError } from '../../shared/errors.ts'
import type { Provider } from '../../shared/providers.ts'

/** A transfer of money that an operator made for this service and that the database lacks. */
export interface Orphan {
  id: bigint
  provider: Provider
  kind: 'collect' | 'disburse' | 'reverse'
  amount: bigint
  /** The phone number of the customer or payee, if the operator reports it; otherwise null. */
  counterparty: string | null
  operatorRef: string
  /** The identity under which the operator was asked, where the operator repeats it. */
  correlationId: string | null
  postedAt: Date
}

/** The most orphans in one list. Choice: more than a person resolves one by one. */
const orphansMax = 10_000

/**
 * SQL that is true if a payment out with this identity exists here and has not begun. When it begins, the
 * service only asks the operator about it, and never sends it. A cancelled payment never begins.
 */
export const isNotBegun = (identity: string) => `(
  EXISTS (SELECT FROM payout p WHERE p.correlation_id = ${identity} AND p.status = 'pending')
  OR EXISTS (SELECT FROM batch_recipient b WHERE b.correlation_id = ${identity} AND b.status = 'pending')
  OR EXISTS (SELECT FROM deposit_approval a JOIN transaction t ON t.id = a.transaction_id
    WHERE a.approval = 'pending' AND t.correlation_id = ${identity} AND t.status = 'pending'))`

/**
 * Lists the orphans that no person has resolved and that match no payment in the database, oldest first. If a
 * merchant requests the payment again under the same reference, the answer of the operator settles that
 * payment, and the transfer is no orphan any more.
 */
export async function listOrphans(pool: Pool): Promise<Orphan[]> {
  const { rows } = await pool.query<Orphan>(
    `SELECT o.id, o.provider, o.kind, o.amount, o.counterparty, o.operator_ref AS "operatorRef",
       o.correlation_id AS "correlationId", o.posted_at AS "postedAt"
     FROM operator_orphan o
     WHERE o.resolved_at IS NULL
       AND NOT EXISTS (SELECT FROM operator_request r WHERE r.correlation_id = o.correlation_id)
       AND NOT ${isNotBegun('o.correlation_id')}
     ORDER BY o.id LIMIT $1`,
    [orphansMax],
  )
  return rows
}

/**
 * Records how a person resolved an orphan.
 * @throws DomainError NOT_FOUND where no such orphan is open
 */
export async function resolveOrphan(pool: Pool, id: bigint, resolution: string): Promise<void> {
  if (!(await resolve(pool, { orphan: id, resolution })))
    throw new DomainError('NOT_FOUND', `No open orphan has the id ${id}.`)
}

const resolve = sqlFunction('resolve_orphan', {
  takes: { orphan: 'bigint', resolution: 'text' },
  gives: 'boolean',
})

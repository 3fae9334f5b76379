import { sqlFunction } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { DomainError } from '../../shared/errors.ts'
import type { Provider } from '../../shared/providers.ts'

/** Money that an operator moved in our name, and that our records lack. */
export interface Orphan {
  id: bigint
  provider: Provider
  kind: 'collect' | 'disburse' | 'reverse'
  amount: bigint
  /** The other side's number, where the operator says it. */
  counterparty: string | null
  operatorRef: string
  /** The identity that we asked under, where the operator repeats it. */
  correlationId: string | null
  postedAt: Date
}

/** Choice: more are a matter for `--json` and a table. */
const orphansMax = 10_000

/**
 * SQL for whether a payment out that has not begun here has an identity: once it begins it is asked about,
 * and never sent. One that was cancelled since never begins.
 */
export const isNotBegun = (identity: string) => `(
  EXISTS (SELECT FROM payout p WHERE p.correlation_id = ${identity} AND p.status = 'pending')
  OR EXISTS (SELECT FROM batch_recipient b WHERE b.correlation_id = ${identity} AND b.status = 'pending')
  OR EXISTS (SELECT FROM deposit_approval a JOIN transaction t ON t.id = a.transaction_id
    WHERE a.approval = 'pending' AND t.correlation_id = ${identity} AND t.status = 'pending'))`

/**
 * The orphans that no person has resolved and no payment was made of since, oldest first. One whose merchant
 * asked again under the same reference is settled by what its operator says, and is none any more.
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
 * Notes what a person did about an orphan.
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

import type { Pool, PoolClient } from 'pg'
import { sqlFunction } from '../database/sql-function.ts'
import { DomainError } from '../shared/errors.ts'

const haltAll = sqlFunction('halt_payments_out', { takes: { why: 'text' }, gives: 'boolean' })
const resumeAll = sqlFunction('resume_payments_out', { takes: { why: 'text' }, gives: 'boolean' })

/**
 * Halts payments out on every node: no new payment reserves money, and accepted payments are not sent.
 * @param reason 1 to 1,000 characters; a longer reason is cut
 * @returns false where payments were halted already: then the first reason stays
 */
export async function haltPaymentsOut(client: Pool | PoolClient, reason: string): Promise<boolean> {
  return haltAll(client, { why: reason.slice(0, reasonLengthMax) })
}

/**
 * Resumes payments out, as a person decided.
 * @returns false where payments were not halted
 * @throws DomainError STATE_CONFLICT while a restore of the database waits to be accepted
 */
export async function resumePaymentsOut(client: Pool | PoolClient, reason: string): Promise<boolean> {
  const { rowCount: waits } = await client.query('SELECT FROM installation WHERE restored_at IS NOT NULL')
  if (waits) throw new DomainError('STATE_CONFLICT', restoreWaits)
  return resumeAll(client, { why: reason })
}

/** The refusal to resume payments while a restore waits to be accepted. */
const restoreWaits =
  'The database was restored, and payments after the backup are not known yet: ' +
  'run "npm run admin -- restore accept".'

/** The length limit of the column's check. */
export const reasonLengthMax = 1_000

import type { Pool } from 'pg'
import { asPlatform } from '../../database/as-platform.ts'
import { shareStatement } from '../../database/shared-statements.ts'
import { sqlFunctionOfMany } from '../../database/sql-function.ts'
import type { Evidence } from '../../operators/operator.ts'
import { originOf, type OpenRequest } from '../../requests/open-request.ts'
import { evidenceJson } from '../../requests/outcome.ts'
import type { RequestServices } from '../../requests/subjects.ts'

/**
 * Reverses a disbursement after its operator confirmed that it gave the money back: the amount becomes
 * available again. A deposit becomes `reversed`; a payout and a recipient stay paid and get a `reversed_at`.
 * Status, ledger entry, event and the end of the operator request are one commit; a repetition changes
 * nothing.
 *
 * Choice: if the disbursement was a refund, the refunded collection keeps its status, even if that is
 * `reversed`. The function logs an error for the people who run the service: the payer no longer has the
 * money, and a person must decide whether to pay the refund again.
 */
export async function reverseDisbursement(
  services: RequestServices,
  subject: Exclude<OpenRequest['subject'], 'collection'>,
  id: bigint,
  evidence: Evidence,
): Promise<{ moved: boolean; status: string }> {
  const about = originOf({ subject, subjectId: id })
  const moved = await services.sharedStatements.run(reverseMany, { about, evidence })
  const stands = await readStatus(
    asPlatform(services, 'operators reverse disbursements of all merchants').pool,
    subject,
    id,
  )
  if (moved && stands.refundOf !== null) {
    services.log.error({ about, refundOf: stands.refundOf }, 'an operator took back a refund')
  } else if (moved) services.log.warn({ about }, 'an operator reversed a disbursement')
  return { moved, status: stands.status }
}

interface Item {
  about: string
  evidence: Evidence
}

/** Reverses many disbursements; see reverse_disbursements.sql. */
export const reverseDisbursements = sqlFunctionOfMany('reverse_disbursements', {
  each: { origin: 'text', evidence: 'jsonb' },
  takes: {},
  gives: { ordinal: 'int', moved: 'boolean' },
})

const reverseMany = shareStatement(async (pool: Pool, items: readonly Item[]): Promise<boolean[]> => {
  const reversals = items.map(({ about, evidence }) => ({
    origin: about,
    evidence: { by: 'query', reversed: true, ...evidenceJson(evidence) },
  }))
  return (await reverseDisbursements(pool, reversals, {})).map(({ moved }) => moved)
})

/** The query that reads the status of each kind of disbursement. */
const standings = {
  deposit: 'SELECT status, refund_of_id AS "refundOf" FROM transaction WHERE id = $1',
  payout: 'SELECT status, NULL AS "refundOf" FROM payout WHERE id = $1',
  recipient: 'SELECT status, NULL AS "refundOf" FROM batch_recipient WHERE id = $1',
} as const

async function readStatus(
  pool: Pool,
  subject: keyof typeof standings,
  id: bigint,
): Promise<{ status: string; refundOf: bigint | null }> {
  const { rows } = await pool.query<{ status: string; refundOf: bigint | null }>({
    name: `${subject}_standing`,
    text: standings[subject],
    values: [id],
  })
  const [row] = rows
  if (!row) throw new Error(`${subject} ${id} does not exist`)
  return row
}

import type { Pool, PoolClient } from 'pg'

/**
 * Stops payments out: every reservation that begins after it is refused, on every node.
 * @param reason 1 to 1,000 characters; what is longer is cut
 * @returns false where they were stopped already: then the first reason stays
 */
export async function haltPaymentsOut(client: Pool | PoolClient, reason: string): Promise<boolean> {
  const { rows } = await client.query<{ done: boolean }>('SELECT halt_payments_out($1) AS done', [
    reason.slice(0, reasonLengthMax),
  ])
  return rows[0]?.done === true
}

/** Lets payments out go on, as a person decided. @returns false where nothing stopped them */
export async function resumePaymentsOut(client: Pool | PoolClient, reason: string): Promise<boolean> {
  const { rows } = await client.query<{ done: boolean }>('SELECT resume_payments_out($1) AS done', [reason])
  return rows[0]?.done === true
}

/** As the column's check has it. */
export const reasonLengthMax = 1_000

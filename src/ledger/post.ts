import type { Pool, PoolClient } from 'pg'
import type { Xof } from '../shared/money.ts'

/** Credits a sandbox merchant, once per cause. False where this cause funded before. */
export async function fund(
  client: Pool | PoolClient,
  merchantId: number,
  cause: string,
  amount: Xof,
): Promise<boolean> {
  const { rows } = await client.query<{ funded: boolean }>('SELECT fund_merchant($1, $2, $3) AS funded', [
    merchantId,
    cause,
    amount,
  ])
  return rows[0]?.funded === true
}

import { mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'
import type { Xof } from '../../shared/money.ts'

/**
 * Sums the paid refunds of a transaction, in whole XOF. One statement reads the sums for a whole query level.
 */
export function refundedAmount(ctx: Context, id: bigint): Promise<Xof> {
  return loader<bigint, Xof>(ctx, 'refundedAmount', (ids) => sumRefunds(ctx, ids)).load(id)
}

async function sumRefunds(ctx: Context, ids: readonly bigint[]): Promise<Xof[]> {
  const { rows } = await ctx.database.merchantPool.query<{ id: bigint; amount: Xof }>({
    name: 'refunded_amounts',
    // As `refunds_of` says, for many collections.
    text: `SELECT r.refund_of_id AS id,
        sum(CASE x.state WHEN 'paid' THEN r.amount ELSE r.settled_amount END)::bigint AS amount
      FROM transaction r
      LEFT JOIN settlement_exception x ON x.merchant_id = r.merchant_id AND x.transaction_id = r.id
      WHERE r.refund_of_id = ANY ($1) AND r.merchant_id = $2 AND r.status = 'success'
      GROUP BY refund_of_id`,
    values: [ids, mine(ctx).merchantId],
  })
  const amounts = new Map(rows.map(({ id, amount }) => [id, amount]))
  return ids.map((id) => amounts.get(id) ?? 0n)
}

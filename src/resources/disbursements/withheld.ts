import { type Context, loader } from '../../context.ts'
import { mine } from '../../identity/callers/actor.ts'
import type { Xof } from '../../shared/money.ts'

/** The description of the field in GraphQL. */
export const withheldWords =
  'The part of the amount that the operator did not confirm, in whole XOF. It waits for a decision of the ' +
  'platform: you get it back, or the operator did pay it. Null if nothing waits.'

/** The column of `settlement_exception` that names each kind of payment out. */
const columns = { deposit: 'transaction_id', payout: 'payout_id', recipient: 'recipient_id' } as const

/**
 * Returns the withheld amount of a payment out, in whole XOF; null if none waits for a decision. One
 * statement reads the amounts for a whole query level.
 */
export function withheldAmount(ctx: Context, kind: keyof typeof columns, id: bigint): Promise<Xof | null> {
  return loader<bigint, Xof | null>(ctx, `withheld ${kind}`, (ids) => readWithheld(ctx, kind, ids)).load(id)
}

async function readWithheld(
  ctx: Context,
  kind: keyof typeof columns,
  ids: readonly bigint[],
): Promise<(Xof | null)[]> {
  const column = columns[kind]
  const { rows } = await ctx.database.merchantPool.query<{ id: bigint; amount: Xof }>({
    name: `withheld_of_${kind}`,
    text: `SELECT ${column} AS id, requested_amount - confirmed_amount AS amount FROM settlement_exception
      WHERE ${column} = ANY ($1) AND merchant_id = $2 AND state = 'open'
        AND confirmed_amount < requested_amount`,
    values: [ids, mine(ctx).merchantId],
  })
  const amounts = new Map(rows.map(({ id, amount }) => [id, amount]))
  return ids.map((id) => amounts.get(id) ?? null)
}

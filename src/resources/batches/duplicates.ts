import { mine } from '../../identity/callers/actor.ts'
import type { SqlConnection } from '../../database/sql-function.ts'
import { type Context, loader } from '../../context.ts'
import type { FieldProblem } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import type { Xof } from '../../shared/money.ts'

/** An account that a batch has more than once. */
export interface Duplicate {
  account: string
  recipientCount: number
  totalAmount: Xof
}

type Paid = readonly { account: string }[]

/**
 * Returns a warning for each recipient in the call whose account is already used: by an earlier recipient in
 * the same call, or by a recipient who was in the batch before. At most 100 warnings.
 * @param counts the number of recipients of each account that the batch has more than once, including
 *   those of this call. Omit `counts` for a new batch, which has no earlier recipients.
 */
export function warnOfDuplicates(call: Paid, counts?: ReadonlyMap<string, number>): FieldProblem[] {
  const indexes = Map.groupBy(call.keys(), (index) => call[index]?.account)
  return [...call.entries()]
    .flatMap(([index, { account }]) => {
      const own = indexes.get(account) ?? []
      const [first = index] = own
      if (first !== index) return [warning(index, `is the same as that of recipients[${first}]`)]
      return (counts?.get(account) ?? 0) > own.length ? [warning(index, 'is in the batch already')] : []
    })
    .slice(0, limits.batchDuplicatesShown)
}

function warning(index: number, words: string): FieldProblem {
  return { field: `recipients[${index}].account`, message: `${words}: both are paid` }
}

/** Counts the recipients that a batch has for each account of a call; leaves out accounts with only one. */
export async function countAccounts(ctx: Context, id: number, call: Paid): Promise<Map<string, number>> {
  const { rows } = await ctx.database.merchantPool.query<{ account: string; count: number }>({
    name: 'count_accounts',
    text: `SELECT account, count(*)::int AS count FROM batch_recipient
      WHERE batch_id = $1 AND merchant_id = $2 AND account = ANY ($3) GROUP BY account HAVING count(*) > 1`,
    values: [id, mine(ctx).merchantId, [...new Set(call.map(({ account }) => account))]],
  })
  return new Map(rows.map(({ account, count }) => [account, count]))
}

/** Reads the first 100 accounts that a batch has more than once, in the order of their first recipients. */
export function duplicatesOf(ctx: Context, id: number): Promise<Duplicate[]> {
  return loader<number, Duplicate[]>(ctx, 'duplicates', async (ids) => {
    const found = await readDuplicates(ctx.database.merchantPool, mine(ctx).merchantId, ids)
    return ids.map((each) => found.get(each) ?? [])
  }).load(id)
}

/** Reads the first 100 duplicate accounts of each of several batches, by the id of the batch. */
export async function readDuplicates(
  database: SqlConnection,
  merchantId: number,
  ids: readonly number[],
): Promise<Map<number, Duplicate[]>> {
  const { rows } = await database.query<Duplicate & { batchId: number }>({
    name: 'duplicates_of_batches',
    text: `SELECT batch_id AS "batchId", account, count AS "recipientCount", total AS "totalAmount"
      FROM (
        SELECT d.*, row_number() OVER (PARTITION BY d.batch_id ORDER BY d.first) AS nth
        FROM (
          SELECT batch_id, account, count(*)::int AS count, sum(amount)::bigint AS total, min(id) AS first
          FROM batch_recipient WHERE batch_id = ANY ($1) AND merchant_id = $2
          GROUP BY batch_id, account HAVING count(*) > 1
        ) AS d
      ) AS d
      WHERE nth <= $3 ORDER BY batch_id, nth`,
    values: [ids, merchantId, limits.batchDuplicatesShown],
  })
  return Map.groupBy(rows, ({ batchId }) => batchId)
}

import { mine } from '../identity/callers/actor.ts'
import { type Context, loader } from '../context.ts'

/** The tables whose rows are found by an id alone. */
export type RowTable = 'transaction' | 'payout' | 'batch' | 'batchRecipient'

/** A function of Prisma that reads the rows of some table. */
type FindMany = (query: object) => Promise<{ id: bigint | number }[]>

/**
 * Loads a row of the merchant with the selection of a Prisma query. If one operation loads several rows of a
 * table at the same time with equal queries, one statement reads them all.
 * @returns the row; null where the merchant has no such row
 */
export function loadRow<Row>(
  ctx: Context,
  table: RowTable,
  query: object,
  id: bigint | number,
): Promise<Row | null> {
  const read = async (ids: readonly (bigint | number)[]) => {
    const where = { ...mine(ctx), id: { in: [...new Set(ids)] } }
    const { findMany } = ctx.database.prisma[table] as unknown as { findMany: FindMany }
    const rows = await findMany({ ...query, where })
    const byId = new Map(rows.map((row) => [row.id, row]))
    return ids.map((each) => (byId.get(each) ?? null) as Row | null)
  }
  return loader(ctx, `${table} ${nameOf(query)}`, read).load(id)
}

/** Returns a text that is the same for equal queries. */
function nameOf(query: object): string {
  return JSON.stringify(query, (_key, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))
}

import type { Batch } from '../../../prisma/generated/prisma/client.ts'
import { mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'
import { noSuchBatch } from './create.ts'

/**
 * Loads a batch of the merchant with the selection of a Prisma query. If one operation loads several batches
 * at the same time with equal queries, one statement reads them all.
 */
export function loadBatch(ctx: Context, query: object, id: number): Promise<Batch> {
  return loader<number, Batch>(ctx, `batch ${nameOf(query)}`, async (ids) => {
    const where = { ...mine(ctx), id: { in: [...new Set(ids)] } }
    const rows = await ctx.database.prisma.batch.findMany({ ...query, where })
    const byId = new Map(rows.map((row) => [row.id, row]))
    return ids.map((each) => byId.get(each) ?? noSuchBatch())
  }).load(id)
}

/** Returns a text that is the same for equal queries. */
function nameOf(query: object): string {
  return JSON.stringify(query, (_key, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))
}

import { isDeepStrictEqual } from 'node:util'
import DataLoader from 'dataloader'
import type { Batch } from '../../../prisma/generated/prisma/client.ts'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { noSuchBatch } from './create.ts'

const loaders = new WeakMap<Context, { query: object; loader: DataLoader<number, Batch> }[]>()

/**
 * A batch of the merchant, as a plan of Prisma's asks for it. What one operation asks for at a time by equal
 * plans is one statement.
 */
export function loadBatch(ctx: Context, query: object, id: number): Promise<Batch> {
  const known = loaders.get(ctx) ?? []
  loaders.set(ctx, known)
  const same = known.find((each) => isDeepStrictEqual(each.query, query))
  if (same) return same.loader.load(id)
  const loader = new DataLoader<number, Batch>(
    async (ids) => {
      const where = { ...mine(ctx), id: { in: [...new Set(ids)] } }
      const rows = await ctx.database.prisma.batch.findMany({ ...query, where })
      const byId = new Map(rows.map((row) => [row.id, row]))
      return ids.map((each) => byId.get(each) ?? noSuchBatch())
    },
    { cache: false },
  )
  known.push({ query, loader })
  return loader.load(id)
}

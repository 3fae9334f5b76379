import type { Batch } from '../../../prisma/generated/prisma/client.ts'
import type { Context } from '../../context.ts'
import { loadRow } from '../load-row.ts'
import { noSuchBatch } from './create.ts'

/** Loads a batch of the merchant with the selection of a Prisma query. @throws DomainError NOT_FOUND */
export async function loadBatch(ctx: Context, query: object, id: number): Promise<Batch> {
  const batch = await loadRow<Batch>(ctx, 'batch', query, id)
  if (!batch) throw noSuchBatch()
  return batch
}

import { type Context, loader } from '../../context.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { mine } from '../../identity/callers/actor.ts'
import type { Xof } from '../../shared/money.ts'

/** Figures of a set of payments. */
export interface PaymentFigures {
  count: bigint
  /** Whole francs that were asked for. */
  amount: Xof
  /** Whole francs that operators confirmed. */
  settledAmount: Xof
  succeeded: bigint
  /** The number of payments that are over: paid, failed, expired, cancelled, given back. */
  ended: bigint
  medianMs: bigint | null
  p95Ms: bigint | null
}

const columns = {
  n: 'bigint',
  amount: sqlType<Xof>('bigint'),
  settledAmount: sqlType<Xof>('bigint'),
  succeeded: 'bigint',
  ended: 'bigint',
  medianMs: 'bigint?',
  p95Ms: 'bigint?',
} as const
const linkStats = sqlFunction('link_stats', {
  takes: { merchant: 'int', linkIds: 'int[]' },
  gives: { linkId: 'int', ...columns },
})
const batchStats = sqlFunction('batch_stats', {
  takes: { merchant: 'int', batchIds: 'int[]' },
  gives: { batchId: 'int', ...columns },
})

/** Reads the figures of the payments by a link. One statement reads those of all links of an operation. */
export function readLinkStats(ctx: Context, linkId: number): Promise<PaymentFigures> {
  const read = async (linkIds: readonly number[]) => {
    const rows = await linkStats(ctx.database.merchantPool, { merchant: mine(ctx).merchantId, linkIds })
    const found = new Map(rows.map(({ linkId: id, n: count, ...figures }) => [id, { count, ...figures }]))
    return linkIds.map((id) => found.get(id) ?? noFigures)
  }
  return loader(ctx, 'figures of links', read).load(linkId)
}

/** Reads the figures of a batch. One statement reads those of all batches of an operation. */
export function readBatchStats(ctx: Context, batchId: number): Promise<PaymentFigures> {
  const read = async (batchIds: readonly number[]) => {
    const rows = await batchStats(ctx.database.merchantPool, { merchant: mine(ctx).merchantId, batchIds })
    const found = new Map(rows.map(({ batchId: id, n: count, ...figures }) => [id, { count, ...figures }]))
    return batchIds.map((id) => found.get(id) ?? noFigures)
  }
  return loader(ctx, 'figures of batches', read).load(batchId)
}

const noFigures: PaymentFigures = {
  count: 0n,
  amount: 0n,
  settledAmount: 0n,
  succeeded: 0n,
  ended: 0n,
  medianMs: null,
  p95Ms: null,
}

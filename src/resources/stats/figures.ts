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
  return figuresById(ctx, 'links', async (merchant, linkIds) => {
    const rows = await linkStats(ctx.database.merchantPool, { merchant, linkIds })
    return rows.map(({ linkId: id, ...row }) => ({ id, ...row }))
  }).load(linkId)
}

/** Reads the figures of a batch. One statement reads those of all batches of an operation. */
export function readBatchStats(ctx: Context, batchId: number): Promise<PaymentFigures> {
  return figuresById(ctx, 'batches', async (merchant, batchIds) => {
    const rows = await batchStats(ctx.database.merchantPool, { merchant, batchIds })
    return rows.map(({ batchId: id, ...row }) => ({ id, ...row }))
  }).load(batchId)
}

type FiguresRow = Omit<PaymentFigures, 'count'> & { id: number; n: bigint }

/** @param read returns a row for each id of which there are payments */
function figuresById(
  ctx: Context,
  kind: string,
  read: (merchantId: number, ids: readonly number[]) => Promise<readonly FiguresRow[]>,
) {
  return loader<number, PaymentFigures>(ctx, `figures of ${kind}`, async (ids) => {
    const rows = await read(mine(ctx).merchantId, ids)
    const found = new Map(rows.map(({ id, n: count, ...figures }) => [id, { count, ...figures }]))
    return ids.map((id) => found.get(id) ?? noFigures)
  })
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

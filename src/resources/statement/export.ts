import { z } from 'zod'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { type Holdings, readBalanceAt, readPage, type StatementLine } from '../../ledger/statement.ts'
import { time } from '../../shared/input.ts'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
import { makeExport } from '../export.ts'
import { checkSpan, originOf } from './span.ts'

const input = z.object({ from: time, to: time.nullish() })

interface Row {
  at: Date
  /** Null at both ends. */
  line: StatementLine | null
  step: string
  /** After it. */
  holdings: Omit<Holdings, 'balance'>
}

/** The statement of a time: opening, every change with what was holdings after it, closing. */
export const statementExport = makeExport({
  holds: 'LedgerEntry',
  input,
  cells: {
    created_at: ({ at }: Row) => at,
    entry_id: ({ line }) => line && line.id,
    step: ({ step }) => step,
    transaction_id: ({ line }) => line && originOf(line.origin).transactionId,
    payout_id: ({ line }) => line && originOf(line.origin).payoutId,
    available_change: ({ line }) => line && line.availableChange,
    reserved_change: ({ line }) => line && line.reservedChange,
    receivable_change: ({ line }) => line && line.receivableChange,
    available: ({ holdings }) => holdings.available,
    reserved: ({ holdings }) => holdings.reserved,
    receivable: ({ holdings }) => holdings.receivable,
    // Last: who reads by place finds the others where they were.
    batch_id: ({ line }) => line && originOf(line.origin).batchId,
    recipient_id: ({ line }) => line && originOf(line.origin).recipientId,
  },
  texts: [],
  pages: readStatementRows,
})

async function* readStatementRows(ctx: Context, wishes: z.output<typeof input>): AsyncGenerator<Row[], void> {
  const span = checkSpan(ctx, wishes)
  const { merchantId } = mine(ctx)
  const { merchantPool } = ctx.database
  let holdings: Row['holdings'] = await readBalanceAt(merchantPool, merchantId, span.from)
  yield [{ at: span.from, line: null, step: 'opening', holdings }]
  let after: StatementLine | null = null
  for (;;) {
    const page = await readPage(merchantPool, merchantId, { ...span, after, take: limits.exportPageRows })
    const rows = page.lines.map((line): Row => {
      holdings = {
        available: holdings.available + line.availableChange,
        reserved: holdings.reserved + line.reservedChange,
        receivable: holdings.receivable + line.receivableChange,
      }
      return { at: line.createdAt, line, step: line.step, holdings }
    })
    after = page.lines.at(-1) ?? after
    yield rows
    if (!page.closing) continue
    const { closing } = page
    // What came in behind the reader's back is missed by this reading: it ends without its end.
    const isWhole = (['available', 'reserved', 'receivable'] as const).every(
      (kind) => holdings[kind] === closing[kind],
    )
    invariant(isWhole, `statement of merchant ${merchantId}: opening and lines are not the closing`)
    yield [{ at: closing.asOf, line: null, step: 'closing', holdings: closing }]
    return
  }
}

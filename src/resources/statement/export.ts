import { z } from 'zod'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { type Held, readBalanceAt, readPage, type StatementLine } from '../../ledger/statement.ts'
import { time } from '../../shared/input.ts'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
import { makeExport } from '../export.ts'
import { checkSpan, subjectOf } from './span.ts'

const input = z.object({ from: time, to: time.nullish() })

interface Row {
  at: Date
  /** Null at both ends. */
  line: StatementLine | null
  step: string
  /** After it. */
  held: Omit<Held, 'balance'>
}

/** The statement of a time: opening, every change with what was held after it, closing. */
export const statementExport = makeExport({
  holds: 'LedgerEntry',
  input,
  cells: {
    created_at: ({ at }: Row) => at,
    entry_id: ({ line }) => line && line.id,
    step: ({ step }) => step,
    transaction_id: ({ line }) => line && subjectOf(line.cause).transactionId,
    payout_id: ({ line }) => line && subjectOf(line.cause).payoutId,
    available_change: ({ line }) => line && line.availableChange,
    reserved_change: ({ line }) => line && line.reservedChange,
    receivable_change: ({ line }) => line && line.receivableChange,
    available: ({ held }) => held.available,
    reserved: ({ held }) => held.reserved,
    receivable: ({ held }) => held.receivable,
    // Last: who reads by place finds the others where they were.
    batch_id: ({ line }) => line && subjectOf(line.cause).batchId,
    recipient_id: ({ line }) => line && subjectOf(line.cause).recipientId,
  },
  texts: [],
  pages: readStatementRows,
})

async function* readStatementRows(ctx: Context, wishes: z.output<typeof input>): AsyncGenerator<Row[], void> {
  const span = checkSpan(ctx, wishes)
  const { merchantId } = mine(ctx)
  const { merchantPool } = ctx.database
  let held: Row['held'] = await readBalanceAt(merchantPool, merchantId, span.from)
  yield [{ at: span.from, line: null, step: 'opening', held }]
  let after: StatementLine | null = null
  for (;;) {
    const page = await readPage(merchantPool, merchantId, { ...span, after, take: limits.exportPageRows })
    const rows = page.lines.map((line): Row => {
      held = {
        available: held.available + line.availableChange,
        reserved: held.reserved + line.reservedChange,
        receivable: held.receivable + line.receivableChange,
      }
      return { at: line.createdAt, line, step: line.step, held }
    })
    after = page.lines.at(-1) ?? after
    yield rows
    if (!page.closing) continue
    const { closing } = page
    // What came in behind the reader's back is missed by this reading: it ends without its end.
    const isWhole = (['available', 'reserved', 'receivable'] as const).every(
      (kind) => held[kind] === closing[kind],
    )
    invariant(isWhole, `statement of merchant ${merchantId}: opening and lines are not the closing`)
    yield [{ at: closing.asOf, line: null, step: 'closing', held: closing }]
    return
  }
}

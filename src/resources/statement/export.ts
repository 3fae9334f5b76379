import type { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { type Holdings, readBalanceAt, readPage, type StatementLine } from '../../ledger/statement.ts'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
import { makeExport } from '../export.ts'
import { idIn } from './origin.ts'
import { checkSpan, spanInput } from './span.ts'

interface Row {
  at: Date
  /** Null in the opening and in the closing row. */
  line: StatementLine | null
  step: string
  /** The balances after the row. */
  holdings: Omit<Holdings, 'balance'>
}

/** The export of a statement: opening balances, each entry with the balances after it, closing balances. */
export const statementExport = makeExport({
  holds: 'LedgerEntry',
  input: spanInput,
  cells: {
    created_at: ({ at }: Row) => at,
    entry_id: ({ line }) => line && line.id,
    step: ({ step }) => step,
    transaction_id: ({ line }) => line && idIn(line.origin, 'transaction'),
    payout_id: ({ line }) => line && idIn(line.origin, 'payout'),
    available_change: ({ line }) => line && line.availableChange,
    reserved_change: ({ line }) => line && line.reservedChange,
    receivable_change: ({ line }) => line && line.receivableChange,
    available: ({ holdings }) => holdings.available,
    reserved: ({ holdings }) => holdings.reserved,
    receivable: ({ holdings }) => holdings.receivable,
    // These columns stand last, so that a program that reads columns by number finds the others as before.
    batch_id: ({ line }) => line && idIn(line.origin, 'batch'),
    recipient_id: ({ line }) => line && idIn(line.origin, 'recipient'),
  },
  texts: [],
  pages: readStatementRows,
})

async function* readStatementRows(
  ctx: Context,
  options: z.input<typeof spanInput>,
): AsyncGenerator<Row[], void> {
  const span = checkSpan(ctx, options)
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
    // If an entry was committed late, in front of entries that were already read, the rows lack it: then the
    // export fails and has no closing row.
    const isWhole = (['available', 'reserved', 'receivable'] as const).every(
      (kind) => holdings[kind] === closing[kind],
    )
    invariant(
      isWhole,
      `statement of merchant ${merchantId}: opening balances plus lines differ from the closing`,
    )
    yield [{ at: closing.asOf, line: null, step: 'closing', holdings: closing }]
    return
  }
}

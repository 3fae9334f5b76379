import { mine } from '../../identity/actor.ts'
import { type Context, loader } from '../../context.ts'
import { type LedgerEntry, readEntries } from '../../ledger/entries.ts'

/**
 * The ledger entries of a cause (`transaction:12`), oldest first. All that one operation asks for at a time
 * is one statement.
 */
export function loadEntries(ctx: Context, origin: string): Promise<LedgerEntry[]> {
  const { merchantId } = mine(ctx)
  const read = (origins: readonly string[]) => readEntries(ctx.database.merchantPool, merchantId, origins)
  return loader(ctx, 'ledgerEntries', read).load(origin)
}

import { mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'
import { type LedgerEntry, readEntries } from '../../ledger/entries.ts'

/**
 * Loads the ledger entries of an origin (`transaction:12`), oldest first. One statement reads all entries
 * that an operation needs at the same time.
 */
export function loadEntries(ctx: Context, origin: string): Promise<LedgerEntry[]> {
  const { merchantId } = mine(ctx)
  const read = (origins: readonly string[]) => readEntries(ctx.database.merchantPool, merchantId, origins)
  return loader(ctx, 'ledgerEntries', read).load(origin)
}

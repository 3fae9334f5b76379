import DataLoader from 'dataloader'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { type LedgerEntry, readEntries } from '../../ledger/entries.ts'

const loaders = new WeakMap<Context, DataLoader<string, LedgerEntry[]>>()

/**
 * The ledger entries of a cause (`transaction:12`), oldest first. All that one operation asks for at a time
 * is one statement.
 */
export function loadEntries(ctx: Context, cause: string): Promise<LedgerEntry[]> {
  const known = loaders.get(ctx)
  if (known) return known.load(cause)
  const { merchantId } = mine(ctx)
  const loader = new DataLoader<string, LedgerEntry[]>(
    (causes) => readEntries(ctx.database.merchantPool, merchantId, causes),
    // A live stream asks again, and means what is there by then.
    { cache: false },
  )
  loaders.set(ctx, loader)
  return loader.load(cause)
}

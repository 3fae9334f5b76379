import type pg from 'pg'

// The figures of payments (`payment_figure`, `settle_time`, `link_figure`) are sums of rows, and triggers
// keep them as the rows change. They are filled from the rows once the triggers are there.

/** Whether the functions that were applied last keep the figures: those of an older release do not. */
const areKept = `exists (select from pg_proc where oid = to_regprocedure('fill_payment_figures()'))
  and not exists (select from _retired_functions where signature = 'fill_payment_figures()')`

/**
 * Marks the figures as not filled where the functions of an older release are in the database: nodes of that
 * release change payments without recording it for the figures. So the figures are exact again where an
 * operator went back to that release and then forward.
 * @param client in the transaction that applies the functions, before they are applied
 */
export async function expirePaymentFigures(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ isMarked: boolean }>(
    `select to_regclass('_payment_figure_fill') is not null and not (${areKept}) as "isMarked"`,
  )
  if (rows[0]?.isMarked) await client.query('delete from _payment_figure_fill')
}

/**
 * Fills the figures from the payments, where this was not done since the functions keep them. The fill locks
 * no table of payments, so other nodes go on.
 *
 * The figures are exact because of two locks. The transaction that applied the functions made each trigger
 * anew, and so waited for every transaction that had written payments: each later change is recorded, and the
 * fill sees all others. And `fill_payment_figures` takes the lock of compaction: one that ran with the
 * functions of an older release is over, and none adds or removes a recorded change meanwhile.
 * @param client the owner's session, which holds the lock of migrations, outside of a transaction
 * @returns whether they were filled now
 */
export async function fillPaymentFigures(client: pg.Client): Promise<boolean> {
  const { rowCount } = await client.query(
    `select where ${areKept} and not exists (select from _payment_figure_fill)`,
  )
  if (!rowCount) return false
  // Each statement of the function sees what was committed before it, also while the function waited.
  await client.query('begin isolation level read committed; select fill_payment_figures(); commit')
  return true
}

import { pipeline } from 'node:stream/promises'
import type { GraphQLSchema } from 'graphql'
import { takeSlots } from '../limits/slot.ts'
import type { Context } from '../context.ts'
import { asMerchant } from '../database/merchant-pool.ts'
import { accessRuleOf } from '../graphql/access-plan.ts'
import type { ExportCell, Export } from '../resources/export.ts'
import { recipientsExport } from '../resources/batches/export.ts'
import { payoutsExport } from '../resources/payouts/export.ts'
import { statementExport } from '../resources/statement/export.ts'
import { transactionsExport } from '../resources/transactions/export.ts'
import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import { csvHead, csvLines } from './csv.ts'
import { downloadRow, type Fetch } from './downloads.ts'
import { query } from './rest/route.ts'
import { queryOf, type RouteRow } from './request.ts'

/**
 * The most exports of one merchant at the same time. Choice: two, because each holds a database session while
 * it reads.
 */
const exportsPerMerchantMax = 2

/** Every table that can be exported whole, as `/merchant/api/exports/NAME.csv`. */
const exports: Readonly<Record<string, Export>> = {
  transactions: transactionsExport,
  payouts: payoutsExport,
  statement: statementExport,
  recipients: recipientsExport,
}

export const exportNames = Object.keys(exports)

/**
 * Makes the rows of the path table for the exports: tables of any length as CSV, in constant memory. A page
 * is read only after the client has taken the page before it.
 */
export function exportRows(schema: GraphQLSchema): RouteRow[] {
  /** The number of running exports, by merchant. */
  const taken = new Map<string, number>()
  return Object.entries(exports).map(([name, table]) =>
    downloadRow(`/exports/${name}.csv`, {
      fileName: `${name}.csv`,
      contentType: 'text/csv; charset=utf-8; header=present',
      route: `Export ${name}`,
      rule: accessRuleOf(schema, table.holds),
      send: (caller, fetch) => send(caller, table, taken, fetch),
    }),
  )
}

async function send(
  caller: Context,
  table: Export,
  taken: Map<string, number>,
  { message, response, begin }: Fetch,
): Promise<void> {
  const options = query({ query: queryOf(message) }, table.input)
  const merchantId = caller.actor?.merchantId ?? null
  const free = takeSlots(taken, [{ key: String(merchantId), max: exportsPerMerchantMax, whose: 'merchant' }])
  if (typeof free !== 'function') throw tooMany()
  try {
    const pages = table.pages(caller, options)
    const next = () => asMerchant(merchantId, () => pages.next())
    const first = await caller.admission.run('dashboard', next)
    if (!begin()) return
    // Disconnect a client that reads nothing for this time.
    response.setTimeout(limits.streamStallMs, () => response.destroy())
    await pipeline(textOf(table, first, next), response)
  } finally {
    free()
  }
}

/** Yields a table as CSV, page by page. */
async function* textOf(
  { columns }: Export,
  first: IteratorResult<readonly (readonly ExportCell[])[], void>,
  next: () => Promise<typeof first>,
): AsyncGenerator<string, void> {
  // Without this mark Excel reads the accents of UTF-8 as two letters each.
  yield `\ufeff${csvHead(columns)}`
  for (let page = first; !page.done; page = await next()) {
    if (page.value.length > 0) yield csvLines(columns, page.value)
  }
}

function tooMany(): DomainError {
  const message = `A merchant can run ${exportsPerMerchantMax} exports at a time. Wait until one ends.`
  return new DomainError('RATE_LIMITED', message, { retryAfterS: limits.overloadRetryS })
}

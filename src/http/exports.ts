import { pipeline } from 'node:stream/promises'
import type { GraphQLSchema } from 'graphql'
import { takeSlots } from '../limits/slot.ts'
import type { Context, Services } from '../context.ts'
import { asMerchant } from '../database/merchant-pool.ts'
import { accessRuleOf } from '../graphql/access-plan.ts'
import type { Cell, Export } from '../resources/export.ts'
import { recipientsExport } from '../resources/batches/export.ts'
import { payoutsExport } from '../resources/payouts/export.ts'
import { statementExport } from '../resources/statement/export.ts'
import { transactionsExport } from '../resources/transactions/export.ts'
import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import { csvHead, csvLines } from './csv.ts'
import { type Exchange, openDownloads } from './downloads.ts'
import type { Door } from './rest/handler.ts'
import { query } from './rest/shape.ts'

/** Exports of one merchant at once. Choice: two, because each holds a database session while it reads. */
const exportsPerMerchantMax = 2

/** Every table that is fetched whole, as `/merchant/api/exports/NAME.csv`. */
const exports: Readonly<Record<string, Export>> = {
  transactions: transactionsExport,
  payouts: payoutsExport,
  statement: statementExport,
  recipients: recipientsExport,
}

export const exportNames = Object.keys(exports)

/**
 * Tables of any length as CSV, in constant memory: a page is read when its reader has taken the one before.
 */
export function openExports(services: Services, schema: GraphQLSchema): Door {
  /** Exports under way, by merchant. */
  const taken = new Map<string, number>()
  const rules = new Map(
    Object.entries(exports).map(([name, { holds }]) => [name, accessRuleOf(schema, holds)]),
  )
  return openDownloads(services, (path) => {
    const [, name = ''] = /^\/exports\/(\w+)\.csv$/.exec(path) ?? []
    const rule = rules.get(name)
    const table = exports[name]
    if (!table || !rule) return null
    return {
      fileName: `${name}.csv`,
      contentType: 'text/csv; charset=utf-8; header=present',
      route: `Export ${name}`,
      rule,
      send: (caller, exchange) => send(caller, table, taken, exchange),
    }
  })
}

async function send(
  caller: Context,
  table: Export,
  taken: Map<string, number>,
  { message, response, begin }: Exchange,
): Promise<void> {
  const search = new URL(message.url ?? '/', 'http://localhost').searchParams
  const wishes = query(
    { params: {}, query: search, headers: message.headers, body: Buffer.alloc(0) },
    table.input,
  )
  const merchantId = caller.actor?.merchantId ?? null
  const free = takeSlots(taken, [{ key: String(merchantId), max: exportsPerMerchantMax, whose: 'merchant' }])
  if (typeof free !== 'function') throw tooMany()
  try {
    const pages = table.pages(caller, wishes)
    const next = () => asMerchant(merchantId, () => pages.next())
    const first = await caller.admission.run('dashboard', next)
    if (!begin()) return
    // A reader that takes nothing more is gone.
    response.setTimeout(limits.streamStallMs, () => response.destroy())
    await pipeline(textOf(table, first, next), response)
  } finally {
    free()
  }
}

/** The text of a table, page by page. */
async function* textOf(
  { columns }: Export,
  first: IteratorResult<readonly (readonly Cell[])[], void>,
  next: () => Promise<typeof first>,
): AsyncGenerator<string, void> {
  yield csvHead(columns)
  for (let page = first; !page.done; page = await next()) {
    if (page.value.length > 0) yield csvLines(columns, page.value)
  }
}

function tooMany(): DomainError {
  const message = `An account fetches ${exportsPerMerchantMax} exports at a time: let one end first.`
  return new DomainError('RATE_LIMITED', message, { retryAfterS: limits.overloadRetryS })
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { takePlaces } from '../access/places.ts'
import type { Context, Services } from '../context.ts'
import { asMerchant } from '../database/merchant-pool.ts'
import { checkRule } from '../graphql/access-plan.ts'
import type { Cell, Export } from '../resources/export.ts'
import { payoutsExport } from '../resources/payouts/export.ts'
import { statementExport } from '../resources/statement/export.ts'
import { transactionsExport } from '../resources/transactions/export.ts'
import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import { apiVersion } from '../shared/version.ts'
import { csvHead, csvLines } from './csv.ts'
import { anonymousContext, passOver, pathOf, requestIdOf, signIn } from './request.ts'
import { type Door, restPrefix, writeRefusal } from './rest/handler.ts'
import { query } from './rest/shape.ts'

/** Every table that is fetched whole, as `/merchant/api/exports/NAME.csv`. All need the scope `balance`. */
const exports: Readonly<Record<string, Export>> = {
  transactions: transactionsExport,
  payouts: payoutsExport,
  statement: statementExport,
}

/**
 * Tables of any length as CSV, in constant memory: a page is read when its reader has taken the one before.
 * What is wrong is told in the envelope while nothing was sent; later the connection breaks off, so that no
 * reader takes a part for the whole.
 */
export function openExports(services: Services): Door {
  const taken = new Map<string, number>()
  return (message, response) => {
    const path = pathOf(message) ?? ''
    const [, name = ''] = /^\/exports\/(\w+)\.csv$/.exec(path.slice(restPrefix.length)) ?? []
    if (!path.startsWith(restPrefix) || !Object.hasOwn(exports, name)) return false
    const table = exports[name]
    if (!table) return false
    const ctx = anonymousContext(services, message, requestIdOf(message), 'rest')
    void send(ctx, { name, table, message, response, taken })
      .catch((error: unknown) => refuse(ctx, response, error))
      .finally(() => {
        if (!message.complete) passOver(message)
      })
    return true
  }
}

interface Exchange {
  name: string
  table: Export
  message: IncomingMessage
  response: ServerResponse
  /** Exports under way, by merchant. */
  taken: Map<string, number>
}

async function send(ctx: Context, { name, table, message, response, taken }: Exchange): Promise<void> {
  const method = message.method ?? ''
  if (method !== 'GET' && method !== 'HEAD') {
    ctx.responseHeaders.set('Allow', 'GET, HEAD')
    throw new DomainError('METHOD_NOT_ALLOWED')
  }
  ctx.admission.check('dashboard')
  const caller = await admit(ctx, name, message.headers.authorization)
  const search = new URL(message.url ?? '/', 'http://localhost').searchParams
  const wishes = query(
    { params: {}, query: search, headers: message.headers, body: Buffer.alloc(0) },
    table.input,
  )
  const merchantId = caller.actor?.merchantId ?? null
  const free = takePlaces(taken, [
    { key: String(merchantId), max: limits.exportsPerMerchantMax, whose: 'merchant' },
  ])
  if (typeof free !== 'function') throw tooMany()
  try {
    const pages = table.pages(caller, wishes)
    const next = () => asMerchant(merchantId, () => pages.next())
    const first = await ctx.admission.run('dashboard', next)
    response.writeHead(200, headersOf(caller, name))
    if (method === 'HEAD') return void response.end()
    // A reader that takes nothing more is gone.
    response.setTimeout(limits.streamStallMs, () => response.destroy())
    await pipeline(textOf(table, first, next), response)
  } finally {
    free()
  }
}

/** As a route of the table admits its callers. */
async function admit(ctx: Context, name: string, authorization: string | undefined): Promise<Context> {
  const route = `Export ${name}`
  let caller = ctx
  try {
    caller = await signIn(ctx, authorization)
    checkRule(['balance'], `${name}.csv`, caller.actor)
  } catch (error) {
    ctx.requestLimits.tellTurns(caller, 'read', route)
    throw error
  }
  await ctx.requestLimits.takeTurn(caller, 'read', route)
  return caller
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

function headersOf({ requestId, responseHeaders }: Context, name: string): Record<string, string> {
  return {
    'Content-Type': 'text/csv; charset=utf-8; header=present',
    'Content-Disposition': `attachment; filename="${name}.csv"`,
    'Cache-Control': 'no-store',
    'X-API-Version': apiVersion,
    'X-Request-Id': requestId,
    ...Object.fromEntries(responseHeaders),
  }
}

function tooMany(): DomainError {
  const message = `An account fetches ${limits.exportsPerMerchantMax} exports at a time: let one end first.`
  return new DomainError('RATE_LIMITED', message, { retryAfterS: limits.overloadRetryS })
}

/** In the envelope, while nothing was sent. */
function refuse(ctx: Context, response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    // Whoever went away before the end is no fault of ours.
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ERR_STREAM_PREMATURE_CLOSE') ctx.log.error({ err: error }, 'an export broke off')
    return void response.destroy()
  }
  const { status, headers, text } = writeRefusal(ctx, error)
  response.writeHead(status, headers)
  response.end(text)
}

import type { Context } from '../context.ts'
import { type AccessRule, checkRule } from '../graphql/access-plan.ts'
import { enter, hasRoom, mayAsk, signIn, takesTurn } from '../enter.ts'
import { DomainError } from '../shared/errors.ts'
import { apiVersion } from '../shared/version.ts'
import type { HttpExchange, RouteRow, Serve } from './request.ts'
import { restPrefix, writeRefusal } from './rest/handler.ts'

/** What is fetched as a file, below `/merchant/api`. */
export interface Download {
  fileName: string
  contentType: string
  /** Its name where requests are counted. */
  route: string
  /** Who may fetch it: the access rule that the schema states for the type that the file holds. */
  rule: AccessRule
  /**
   * Sends what was asked for, its head by `begin`.
   * @throws DomainError before the head: it is told in the envelope; later the connection breaks off, so that
   *   no reader takes a part for the whole
   */
  send: (caller: Context, fetch: Fetch) => Promise<void>
}

/** A request for a file, from somebody who may have it. */
export interface Fetch extends HttpExchange {
  /** Writes status and headers. @returns whether a body is wanted; else the answer has ended */
  begin: () => boolean
}

/** The row of a file. @param path below `/merchant/api` */
export function downloadRow(path: string, download: Download, part?: string): RouteRow {
  const serve: Serve = (exchange) =>
    answer(exchange, download).catch((error: unknown) => refuse(exchange, error))
  return { path: `${restPrefix}${path}`, ...(part !== undefined && { part }), serve: () => serve }
}

async function answer(exchange: HttpExchange, download: Download): Promise<void> {
  const { ctx, message, response } = exchange
  const { fileName, route, rule } = download
  const method = message.method ?? ''
  if (method !== 'GET' && method !== 'HEAD') {
    ctx.responseHeaders.set('Allow', 'GET, HEAD')
    throw new DomainError('METHOD_NOT_ALLOWED')
  }
  const caller = await enter(ctx, {
    room: hasRoom('dashboard'),
    caller: signIn(message.headers.authorization),
    right: mayAsk((actor) => checkRule(rule, fileName, actor)),
    turn: takesTurn('read', route),
  })
  const begin = () => {
    response.writeHead(200, headersOf(caller, download))
    if (method === 'HEAD') response.end()
    return method !== 'HEAD'
  }
  return download.send(caller, { ...exchange, begin })
}

function headersOf(
  { requestId, responseHeaders }: Context,
  { fileName, contentType }: Download,
): Record<string, string> {
  return {
    'Content-Type': contentType,
    'Content-Disposition': `attachment; filename="${fileName}"`,
    'Cache-Control': 'no-store',
    'X-API-Version': apiVersion,
    'X-Request-Id': requestId,
    ...Object.fromEntries(responseHeaders),
  }
}

/** In the envelope, while nothing was sent. */
function refuse({ ctx, response }: HttpExchange, error: unknown): void {
  if (response.headersSent) {
    // Whoever went away before the end is no fault of ours.
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ERR_STREAM_PREMATURE_CLOSE') ctx.log.error({ err: error }, 'a download broke off')
    return void response.destroy()
  }
  const { status, headers, text } = writeRefusal(ctx, error)
  response.writeHead(status, headers)
  response.end(text)
}

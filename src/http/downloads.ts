import type { Context } from '../context.ts'
import { type AccessRule, checkRule } from '../graphql/access-plan.ts'
import { enter, hasRoom, mayAsk, signIn, takesTurn } from '../enter.ts'
import { DomainError } from '../shared/errors.ts'
import { apiVersion } from '../shared/version.ts'
import type { HttpExchange, RouteRow, Serve } from './request.ts'
import { restPrefix, writeRefusal } from './rest/handler.ts'

/** A file that callers download, below `/merchant/api`. */
export interface Download {
  fileName: string
  contentType: string
  /** The name under which requests for the file are counted. */
  route: string
  /** The access rule of the file: the rule that the schema states for the type that the file shows. */
  rule: AccessRule
  /**
   * Sends the file; calls `begin` to send the head.
   * @throws DomainError before the head: the answer is then the envelope of the refusal. After the head, any
   *   error breaks the connection off, so that no client takes a part of the file for the whole file
   */
  send: (caller: Context, fetch: Fetch) => Promise<void>
}

/** A request for a file by a caller who has the right to it. */
export interface Fetch extends HttpExchange {
  /** Writes status and headers. @returns true if the request wants a body; else the answer has ended */
  begin: () => boolean
}

/** Makes the row of a file in the table of paths. @param path the path below `/merchant/api` */
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

/** Answers with a refusal in the envelope; breaks the connection off where the head has been sent. */
function refuse({ ctx, response }: HttpExchange, error: unknown): void {
  if (response.headersSent) {
    // A client that goes away before the end is no error of the service.
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ERR_STREAM_PREMATURE_CLOSE')
      ctx.log.error({ err: error }, 'a download ended before it was complete')
    return void response.destroy()
  }
  const { status, headers, text } = writeRefusal(ctx, error)
  response.writeHead(status, headers)
  response.end(text)
}

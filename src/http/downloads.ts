import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context, Services } from '../context.ts'
import { type AccessRule, checkRule } from '../graphql/access-plan.ts'
import { DomainError } from '../shared/errors.ts'
import { apiVersion } from '../shared/version.ts'
import { anonymousContext, passOver, pathOf, requestIdOf, signIn } from './request.ts'
import { type Door, restPrefix, writeRefusal } from './rest/handler.ts'

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
  send: (caller: Context, exchange: Exchange) => Promise<void>
}

export interface Exchange {
  message: IncomingMessage
  response: ServerResponse
  /** Writes status and headers. @returns whether a body is wanted; else the answer has ended */
  begin: () => boolean
}

/** Answers what `find` knows by its path; other requests pass by. */
export function openDownloads(services: Services, find: (path: string) => Download | null): Door {
  return (message, response) => {
    // Most requests are for something else, and are not looked at twice.
    if (!/\.\w+(?:\?|$)/.test(message.url ?? '')) return false
    const path = pathOf(message) ?? ''
    const download = path.startsWith(`${restPrefix}/`) ? find(path.slice(restPrefix.length)) : null
    if (!download) return false
    const ctx = anonymousContext(services, message, requestIdOf(message), 'rest')
    void answer(ctx, download, { message, response })
      .catch((error: unknown) => refuse(ctx, response, error))
      .finally(() => {
        if (!message.complete) passOver(message)
      })
    return true
  }
}

async function answer(
  ctx: Context,
  download: Download,
  { message, response }: Pick<Exchange, 'message' | 'response'>,
): Promise<void> {
  const method = message.method ?? ''
  if (method !== 'GET' && method !== 'HEAD') {
    ctx.responseHeaders.set('Allow', 'GET, HEAD')
    throw new DomainError('METHOD_NOT_ALLOWED')
  }
  ctx.admission.check('dashboard')
  const caller = await admit(ctx, download, message.headers.authorization)
  const begin = () => {
    response.writeHead(200, headersOf(caller, download))
    if (method === 'HEAD') response.end()
    return method !== 'HEAD'
  }
  return download.send(caller, { message, response, begin })
}

/** As a route of the table admits its callers. */
async function admit(
  ctx: Context,
  { fileName, route, rule }: Download,
  authorization: string | undefined,
): Promise<Context> {
  let caller = ctx
  try {
    caller = await signIn(ctx, authorization)
    checkRule(rule, fileName, caller.actor)
  } catch (error) {
    ctx.requestLimits.tellTurns(caller, 'read', route)
    throw error
  }
  await ctx.requestLimits.takeTurn(caller, 'read', route)
  return caller
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
function refuse(ctx: Context, response: ServerResponse, error: unknown): void {
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

import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { HttpBindings as NodeBindings } from '@hono/node-server'
import { clientAddress } from '../shared/ip-whitelist.ts'
import type { Channel } from '../audit/audit-log.ts'
import type { Context, Services, SessionCookie } from '../context.ts'
import { invalidInput } from '../shared/input.ts'
import { preferredLanguage } from '../shared/language.ts'
import { limits } from '../shared/limits.ts'
import { answerMalformed } from './malformed.ts'

/** The bindings that Hono gives to a route: Node's own request. */
export interface HttpBindings {
  Bindings: NodeBindings
}

/** A request at its row of the table, before the caller is known. */
export interface HttpExchange {
  ctx: Context
  message: IncomingMessage
  response: ServerResponse
  /** The values of the path's parts in braces. */
  params: Readonly<Record<string, string>>
}

/** A function that answers a request. It never rejects: it answers a failure, too. */
export type Serve = (exchange: HttpExchange) => Promise<void>

/** A row of the table of paths. */
export interface RouteRow {
  /** The path; a part in braces stands for any text. */
  path: string
  /** The form of the parts in braces, as a regular expression. */
  part?: string
  /** Finds the handler of a method. @returns null where the path does not exist for this method */
  serve: (method: string) => Serve | null
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Returns the caller's own request id where it is a UUID, else a new one. */
export function requestIdOf(message: IncomingMessage): string {
  const given = message.headers['x-request-id']
  return typeof given === 'string' && uuid.test(given) ? given : randomUUID()
}

/** Makes the context of a request whose caller is not known yet. */
export function anonymousContext(
  services: Services,
  message: IncomingMessage,
  requestId: string,
  channel: Channel,
): Context {
  const responseHeaders = new Map<string, string>()
  return {
    ...services,
    actor: null,
    requestId,
    channel,
    clientAddress: clientAddress(
      message.socket.remoteAddress,
      message.headers['x-forwarded-for'],
      services.access.isTrustedProxy,
    ),
    language: preferredLanguage(message.headers['accept-language'] ?? '', 'en'),
    idempotentOperation: null,
    log: services.log.child({ requestId }),
    responseHeaders,
    lastEventId: lastEventIdOf(message),
    sessionCookie: sessionCookieOf(services, message, channel, responseHeaders),
    asOfSequence: null,
    loaders: new Map(),
  }
}

/**
 * Returns the cookie of a browser's session. Only pages of this service may use the cookie: the header
 * `Origin` of a request that may change something names its page, so that a page of a stranger signs in no
 * visitor and pays nothing. A plain link has no `Origin`, only reads, and is protected by `SameSite`.
 */
function sessionCookieOf(
  { addresses }: Pick<Services, 'addresses'>,
  { method, headers }: IncomingMessage,
  channel: Channel,
  responseHeaders: Map<string, string>,
): SessionCookie | null {
  const { origin, cookie = '', 'sec-fetch-site': site = 'none' } = headers
  if (origin === undefined && cookie === '') return null
  if (site !== 'none' && site !== 'same-origin') return null
  const onlyReads = channel !== 'websocket' && (method === 'GET' || method === 'HEAD')
  if (origin === undefined ? !onlyReads : !ownOrigins(addresses.publicUrl).has(origin)) return null
  const { name, attributes } = sessionCookieForm(addresses.publicUrl)
  const pairs = cookie.split(/; */).map((pair) => pair.split('=', 2))
  const [, token = null] = pairs.find(([key]) => key === name) ?? []
  const memberId = headers['x-session-member']?.toString() ?? null
  if (channel === 'websocket') return { token, memberId, write: null }
  return {
    token,
    memberId,
    write: (issued) => {
      const value = issued ? `${issued.token}; Max-Age=${issued.expiresIn}` : '; Max-Age=0'
      responseHeaders.set('Set-Cookie', `${name}=${value}${attributes}`)
    },
  }
}

/** Whether a browser has a session cookie, be it valid or not. */
export function hasSessionCookie({ cookie = '' }: IncomingHttpHeaders): boolean {
  return cookie.includes(`${plainCookieName}=`)
}

const plainCookieName = 'merchant_session'

/**
 * Returns the name of the session cookie and its attributes. With TLS the prefix `__Host-` makes browsers
 * refuse a cookie that another host, or a page without TLS, would plant.
 */
function sessionCookieForm(publicUrl: string): { name: string; attributes: string } {
  const isSecure = publicUrl.startsWith('https:')
  return {
    name: isSecure ? `__Host-${plainCookieName}` : plainCookieName,
    attributes: `; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`,
  }
}

/** Returns the origins of the service's own pages: a machine has several names for itself. */
function ownOrigins(publicUrl: string): ReadonlySet<string> {
  const { origin, protocol, hostname, port } = new URL(publicUrl)
  if (!loopbackNames.includes(hostname)) return new Set([origin])
  return new Set(loopbackNames.map((name) => `${protocol}//${name}${port && `:${port}`}`))
}

const loopbackNames = ['localhost', '127.0.0.1', '[::1]']

/** Returns the cursor that a client of server-sent events sends when it reconnects. */
function lastEventIdOf(message: IncomingMessage): string | null {
  const given = message.headers['last-event-id']
  return typeof given === 'string' && given !== '' ? given : null
}

/**
 * Returns the path of a request without `.` and `..`, in one spelling; its parts stay encoded. Null where the
 * request names no valid address.
 */
export function pathOf({ url = '/' }: IncomingMessage): string | null {
  const path = url.split('?', 1)[0] ?? ''
  if (/^(\/[\w-]+)+$/.test(path)) return path
  return URL.parse(url, 'http://localhost')?.pathname ?? null
}

/**
 * Reads the parameters in the address of a request.
 * @throws DomainError INVALID_INPUT where the address is not UTF-8, in its path or its parameters
 */
export function queryOf({ url = '/' }: IncomingMessage): URLSearchParams {
  if (!meansUtf8(Buffer.from(url))) throw invalidInput([{ field: '', message: 'The address is not UTF-8' }])
  const [, query] = /\?([^#]*)/.exec(url) ?? []
  return new URLSearchParams(query)
}

/**
 * Whether an address or a form of letters is UTF-8, with its percent-encoded bytes. Wrong bytes would all be
 * read as the same character, and two different names as one.
 */
export function meansUtf8(sent: Buffer): boolean {
  const byteOf = (_escape: string, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))
  const meant = sent.toString('latin1').replaceAll(/%([0-9a-f]{2})/gi, byteOf)
  return isUtf8(sent) && isUtf8(Buffer.from(meant, 'latin1'))
}

/**
 * Reads a request body. Returns null where it is over the limit (the rest is then not read), or was broken
 * off. A body that arrives too slowly ends its connection with 408.
 */
export function readBody(
  message: IncomingMessage,
  maxBytes: number = limits.bodyMaxBytes,
): Promise<Buffer | null> {
  const { 'content-length': length, 'transfer-encoding': encoding } = message.headers
  if (length === undefined && encoding === undefined) return Promise.resolve(Buffer.alloc(0))
  if (Number(length ?? 0) > maxBytes || message.destroyed) return Promise.resolve(null)
  return new Promise((resolve) => {
    const parts: Buffer[] = []
    let size = 0
    const take = (part: Buffer) => {
      size += part.length
      parts.push(part)
      if (size > maxBytes) end(null)
    }
    const mayTakeMs = maxBytes > limits.bodyMaxBytes ? limits.recipientsTimeoutMs : limits.requestTimeoutMs
    const timer = setTimeout(() => answerMalformed(tooSlow, message.socket, false), mayTakeMs)
    const end = (body: Buffer | null) => {
      clearTimeout(timer)
      message.off('data', take)
      message.pause()
      resolve(body)
    }
    message.on('data', take)
    message.once('end', () => end(parts.length === 1 ? (parts[0] ?? null) : Buffer.concat(parts)))
    // A client that hung up in the middle gets no answer, and is no error of the service.
    message.once('error', () => end(null))
    message.once('close', () => end(null))
  })
}

const tooSlow = Object.assign(new Error('The body took too long'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })

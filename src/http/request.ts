import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpBindings as NodeBindings } from '@hono/node-server'
import { clientAddress } from '../shared/ip-whitelist.ts'
import type { Channel } from '../audit/audit-log.ts'
import type { Context, Services } from '../context.ts'
import { limits } from '../shared/limits.ts'
import { answerMalformed } from './malformed.ts'

/** What Hono hands a route: Node's own request. */
export interface HttpBindings {
  Bindings: NodeBindings
}

/** A request at its row of the table; nobody has signed in yet. */
export interface HttpExchange {
  ctx: Context
  message: IncomingMessage
  response: ServerResponse
  /** What the parts of the path in braces stand for. */
  params: Readonly<Record<string, string>>
}

/** Answers a request, its failure included: it never rejects. */
export type Serve = (exchange: HttpExchange) => Promise<void>

/** A row of the table. */
export interface RouteRow {
  /** A part in braces stands for anything. */
  path: string
  /** What the parts in braces look like, as a regular expression. */
  part?: string
  /** @returns null where the path is not there for this method */
  serve: (method: string) => Serve | null
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The caller's own request id where it is a UUID, else a new one. */
export function requestIdOf(message: IncomingMessage): string {
  const given = message.headers['x-request-id']
  return typeof given === 'string' && uuid.test(given) ? given : randomUUID()
}

/** A context for one request in which nobody has signed in yet. */
export function anonymousContext(
  services: Services,
  message: IncomingMessage,
  requestId: string,
  channel: Channel,
): Context {
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
    language: /^\s*fr\b/i.test(message.headers['accept-language'] ?? '') ? 'fr' : 'en',
    idempotentOperation: null,
    log: services.log.child({ requestId }),
    responseHeaders: new Map(),
    lastEventId: lastEventIdOf(message),
    loaders: new Map(),
  }
}

/** What a reader of server-sent events sends when it comes back. */
function lastEventIdOf(message: IncomingMessage): string | null {
  const given = message.headers['last-event-id']
  return typeof given === 'string' && given !== '' ? given : null
}

/**
 * The path of a request, without dots and in its one spelling; parts stay encoded. Null where what was asked
 * for is no address.
 */
export function pathOf({ url = '/' }: IncomingMessage): string | null {
  const path = url.split('?', 1)[0] ?? ''
  if (/^(\/[\w-]+)+$/.test(path)) return path
  return URL.parse(url, 'http://localhost')?.pathname ?? null
}

/**
 * Reads a request body. Null where it is over the limit (the rest is then not read), or broken off; one that
 * dribbles in ends its connection with 408.
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
    // Whoever hung up in the middle hears nothing, and is no fault of ours.
    message.once('error', () => end(null))
    message.once('close', () => end(null))
  })
}

const tooSlow = Object.assign(new Error('The body took too long'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })

/**
 * Passes over what is left of a request that was answered already, so that its connection can be used again;
 * a rest that takes long ends the connection.
 */
export function passOver(message: IncomingMessage): void {
  const timer = setTimeout(() => message.socket.destroySoon(), restMs).unref()
  message.once('close', () => clearTimeout(timer))
  message.on('error', () => {})
  message.resume()
}

/** Choice: whoever was refused has this long to hear it and to stop sending. */
const restMs = 500

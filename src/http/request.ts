import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { HttpBindings as NodeBindings } from '@hono/node-server'
import { clientAddress } from '../access/ip-whitelist.ts'
import { authenticate } from '../access/authenticate.ts'
import type { Context, Services } from '../context.ts'
import { limits } from '../shared/limits.ts'

/** What Hono hands a route: Node's own request. */
export interface HttpBindings {
  Bindings: NodeBindings
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The caller's own request id where it is a UUID, else a new one. */
export function requestIdOf(message: IncomingMessage): string {
  const given = message.headers['x-request-id']
  return typeof given === 'string' && uuid.test(given) ? given : randomUUID()
}

/** A context for one request in which nobody has signed in yet. */
export function anonymousContext(services: Services, message: IncomingMessage, requestId: string): Context {
  return {
    ...services,
    actor: null,
    requestId,
    clientAddress: clientAddress(
      message.socket.remoteAddress,
      message.headers['x-forwarded-for'],
      services.access.isTrustedProxy,
    ),
    language: /^\s*fr\b/i.test(message.headers['accept-language'] ?? '') ? 'fr' : 'en',
    effect: null,
    log: services.log.child({ requestId }),
    responseHeaders: new Map(),
    lastEventId: lastEventIdOf(message),
  }
}

/** What a reader of server-sent events sends when it comes back. */
function lastEventIdOf(message: IncomingMessage): string | null {
  const given = message.headers['last-event-id']
  return typeof given === 'string' && given !== '' ? given : null
}

/**
 * Signs the caller in by its Authorization header; without one it stays nobody.
 * @throws DomainError UNAUTHENTICATED, ACCOUNT_INACTIVE, ADDRESS_NOT_ALLOWED
 */
export async function signIn(ctx: Context, authorization: string | undefined): Promise<Context> {
  const actor = await authenticate(ctx.access, { authorization, clientAddress: ctx.clientAddress })
  return { ...ctx, actor }
}

/** Reads a request body. Null where it is over the limit (the rest is then not read), or broken off. */
export async function readBody(message: IncomingMessage): Promise<Buffer | null> {
  if (Number(message.headers['content-length'] ?? 0) > limits.bodyMaxBytes) return null
  const parts: Buffer[] = []
  let size = 0
  try {
    // Ending the loop early must not end the connection: the refusal has yet to be sent.
    for await (const part of message.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += part.length
      if (size > limits.bodyMaxBytes) return null
      parts.push(part)
    }
  } catch (error) {
    // Whoever hung up in the middle hears nothing, and is no fault of ours.
    if (message.errored || message.destroyed) return null
    throw error
  }
  return Buffer.concat(parts)
}

import { type IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * Reads and drops what still comes of a request that was answered early, then closes its connection. Closing
 * the connection while the client writes would reset it, and the client could lose the answer. A client that
 * sends too much more, or nothing for too long, is cut off.
 */
export function passOver(message: IncomingMessage): void {
  const { socket } = message
  // Node calls this at once after the last answer of a connection.
  socket.destroySoon = () => {}
  const close = () => {
    clearTimeout(timer)
    Reflect.deleteProperty(socket, 'destroySoon')
    socket.destroySoon()
  }
  let size = 0
  const timer = setTimeout(close, passOverBounds.silenceMs).unref()
  message.on('data', (part: Buffer) => {
    size += part.length
    timer.refresh()
    if (size > passOverBounds.maxBytes) close()
  })
  message.on('error', () => {})
  message.once('close', close)
  message.resume()
}

/** The connections whose last answer has begun: a later request on one is not handled (RFC 9112, 9.6). */
export const answeredLast = new WeakSet<Duplex>()

/**
 * A response that says `Connection: close` where it begins before its whole request has arrived. Java's
 * client sends no more of a body once it has the answer, and would send its next request on the same
 * connection: the service would read that request, perhaps a payment, as the rest of the body (RFC 9112,
 * 9.3).
 */
export class EarlyLastResponse extends ServerResponse {
  override writeHead(status: number, ...more: unknown[]): this {
    if (!this.req.complete) {
      this.shouldKeepAlive = false
      answeredLast.add(this.req.socket)
    }
    return super.writeHead(status, ...(more as [OutgoingHttpHeaders?]))
  }
}

/**
 * Choice: the largest files that people send by mistake; a slow line sends something within five seconds. The
 * time limit of a whole request holds too (`limits.recipientsTimeoutMs`).
 */
export const passOverBounds = { maxBytes: 64 * 1_024 ** 2, silenceMs: 5_000 }

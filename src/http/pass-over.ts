import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * Reads and drops what still comes of a request that is being answered already. Closing the connection while
 * the client writes would reset it, and the client could lose the answer. A client that sends too much more,
 * or nothing for too long, is cut off.
 */
export function passOver(message: IncomingMessage): void {
  const { socket } = message
  const close = () => {
    Reflect.deleteProperty(socket, 'destroySoon')
    socket.destroySoon()
  }
  let isLast = false
  let size = 0
  // Node calls this at once after the last answer of a connection.
  socket.destroySoon = () => {
    isLast = true
    answeredLast.add(socket)
  }
  const timer = setTimeout(close, passOverBounds.silenceMs).unref()
  message.on('data', (part: Buffer) => {
    size += part.length
    timer.refresh()
    if (size > passOverBounds.maxBytes) close()
  })
  message.on('error', () => {})
  message.once('close', () => {
    clearTimeout(timer)
    Reflect.deleteProperty(socket, 'destroySoon')
    if (isLast) socket.destroySoon()
  })
  message.resume()
}

/** The connections whose last answer was given: a later request on one is not handled (RFC 9112, 9.6). */
export const answeredLast = new WeakSet<Duplex>()

/**
 * Choice: the largest files that people send by mistake; a slow line sends something within five seconds. The
 * time limit of a whole request holds too (`limits.recipientsTimeoutMs`).
 */
export const passOverBounds = { maxBytes: 64 * 1_024 ** 2, silenceMs: 5_000 }

import type { Duplex } from 'node:stream'

/** Connections whose last answer is on its way. */
const closing = new WeakSet<Duplex>()

/**
 * Choice: a client gets this long to read the last answer and to close its side. Closing over bytes that the
 * client still sends would reset the connection, and the client could lose the answer.
 */
const lingerMs = 500

/**
 * Sends the last answer on a connection, reads no further request from it, and destroys it: as soon as the
 * client has closed its side, at the latest after half a second.
 */
export function closeConnection(socket: Duplex, answer: string): void {
  if (closing.has(socket)) return
  closing.add(socket)
  // Node leaves the errors of an upgraded socket to us: without a listener one would end the process.
  socket.on('error', () => socket.destroy())
  // Our own listener takes the bytes from the HTTP parser: a late request must not run after its refusal.
  socket.removeAllListeners('data')
  socket.on('data', () => {})
  socket.end(answer)
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
}

import type { Duplex } from 'node:stream'

/** The connections on which the last answer is being sent. */
const closing = new WeakSet<Duplex>()

/**
 * The time in which a client can read the last answer and close its side. Choice. Closing while the client
 * still sends bytes would reset the connection, and the client could lose the answer.
 */
const lingerMs = 500

/**
 * Sends the last answer on a connection, reads no further request from it, and destroys it as soon as the
 * client has closed its side, at the latest after half a second.
 */
export function closeConnection(socket: Duplex, answer: string): void {
  if (closing.has(socket)) return
  closing.add(socket)
  // Node does not handle the errors of an upgraded socket: without a listener an error would end the process.
  socket.on('error', () => socket.destroy())
  // This listener takes the bytes away from the HTTP parser: a late request must not run after its refusal.
  socket.removeAllListeners('data')
  socket.on('data', () => {})
  socket.end(answer)
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
}

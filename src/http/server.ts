import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { limits } from '../shared/limits.ts'
import { boundConnections, type ConnectionBounds } from './connections.ts'
import { answerMalformed } from './malformed.ts'

const headerMaxBytes = 16 * 1_024

/** The one HTTP server of the service. */
export interface HttpServer {
  server: Server
  /** The port it has, also where any free one was asked for. */
  port: number
  /** Says that the service ends soon: `/readyz` answers 503 from now on, everything else goes on. */
  retire(): void
  isRetiring(): boolean
  /** True once the service is ending: answers then close their connections. */
  isDraining(): boolean
  /**
   * Takes no new connections, tells who asks on an old one that it ends with the answer, lets requests under
   * way end, and closes what is left after `ms`.
   */
  drain(ms: number): Promise<void>
}

/**
 * Listens at once; requests wait for `listener`, so that the port is known while the rest starts.
 * @param bounds how many connections it holds; null, of tests, is any number
 * @throws Error with `EADDRINUSE` where the port is taken
 */
export async function listenHttp(
  host: string,
  port: number,
  listener: Promise<RequestListener>,
  bounds: ConnectionBounds | null = null,
): Promise<HttpServer> {
  let retiring = false
  let draining = false
  let handle: RequestListener | null = null
  void listener.then(
    (ready) => {
      handle = ready
    },
    () => {},
  )

  const server = createServer(
    {
      requireHostHeader: false,
      maxHeaderSize: headerMaxBytes,
      headersTimeout: limits.headersTimeoutMs,
      // Whoever reads a body waits for less where less may come (`readBody`).
      requestTimeout: limits.recipientsTimeoutMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: timeoutSweepMs,
    },
    (message: IncomingMessage, response: ServerResponse) => {
      if (message.httpVersion === '1.1' && message.headers.host === undefined) {
        return answerMalformed(new Error('a request without a Host'), message.socket, false)
      }
      // The service goes by the names that its configuration gives it; what a caller calls it breaks nothing.
      message.headers.host = 'localhost'
      if (draining) response.setHeader('Connection', 'close')
      if (handle) handle(message, response)
      else void listener.then((ready) => ready(message, response)).catch(() => response.destroy())
    },
  )
  // Also a client that stops reading an answer gives its descriptor back.
  server.timeout = limits.connectionIdleMs
  if (bounds) boundConnections(server, bounds)
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  /** The request on each connection that has no answer yet. */
  const asked = new WeakMap<Socket, [IncomingMessage, ServerResponse]>()
  server.prependListener('request', (message, response) => {
    asked.set(message.socket, [message, response])
    response.once('close', () => asked.delete(message.socket))
  })
  server.on('clientError', (error, socket: Socket) => {
    const [message, response] = asked.get(socket) ?? []
    // The bytes may belong to a second request while the first, perhaps a payment, is still at work.
    answerMalformed(error, socket, message?.complete === true || response?.headersSent === true)
  })

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  return {
    server,
    port: (server.address() as AddressInfo).port,
    retire: () => void (retiring = true),
    isRetiring: () => retiring,
    isDraining: () => draining,
    async drain(ms) {
      retiring = true
      draining = true
      // Node's own `close` of an HTTP server ends idle connections at once, also those on which a request is
      // on its way.
      const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))
      const notice = setTimeout(
        () => {
          // Browsers open connections in advance, and Node counts what never asked anything as busy.
          for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
          server.closeIdleConnections()
        },
        Math.min(noticeMs, ms),
      )
      const end = setTimeout(() => server.closeAllConnections(), ms)
      await closed
      clearTimeout(notice)
      clearTimeout(end)
    },
  }
}

/** How late a request that takes too long may be noticed; Node's own half minute is long. */
const timeoutSweepMs = 1_000
/**
 * Who is at work asks again within this time, and is told that the connection ends with the answer; then who
 * was silent is let go. Choice: half a second, as a stop should not take long.
 */
const noticeMs = 500

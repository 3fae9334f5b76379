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
import { answeredLast, EarlyLastResponse, passOver } from './pass-over.ts'

const headerMaxBytes = 16 * 1_024

export interface HttpServer {
  server: Server
  /** The port on which the server listens, also where the configuration asked for any free port. */
  port: number
  /**
   * Announces that the service ends soon: from now on `/readyz` answers 503; all other requests are served.
   */
  retire(): void
  isRetiring(): boolean
  /** True once the service is ending: each answer then closes its connection. */
  isDraining(): boolean
  /**
   * Accepts no new connections, tells the clients of open connections that the next answer is the last, lets
   * running requests end, and closes the remaining connections after `ms`.
   */
  drain(ms: number): Promise<void>
}

/**
 * Listens at once, so that the port is known while the rest of the service starts. Until `listener` resolves,
 * requests wait.
 * @param bounds the limits on connections; null (used in tests) sets no limit
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

  const server: Server = createServer(
    {
      ServerResponse: EarlyLastResponse,
      requireHostHeader: false,
      maxHeaderSize: headerMaxBytes,
      headersTimeout: limits.headersTimeoutMs,
      // A handler that reads a smaller body waits a shorter time (`readBody`).
      requestTimeout: limits.recipientsTimeoutMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: timeoutSweepMs,
      // Any other upgrade is ignored, as HTTP allows: Java's client offers `h2c` with its first request.
      shouldUpgradeCallback: (message) => server.listenerCount('upgrade') > 0 && isWebSocket(message),
    },
    (message: IncomingMessage, response: ServerResponse) => {
      if (answeredLast.has(message.socket)) return
      if (message.httpVersion === '1.1' && message.headers.host === undefined) {
        return answerMalformed(new Error('a request without a Host'), message.socket, false)
      }
      // The service uses the names in its configuration: the `Host` that a caller sends must have no effect.
      message.headers.host = 'localhost'
      message.url = originForm(message)
      if (draining) response.setHeader('Connection', 'close')
      // The parser reads the bytes that came with the head only after this call. A refusal that needs no
      // body, like 401, must not count as early when the whole body came with the head.
      setImmediate(() => {
        if (handle) handle(message, response)
        else void listener.then((ready) => ready(message, response)).catch(() => response.destroy())
      })
    },
  )
  // This also closes the connection of a client that stops reading its answer.
  server.timeout = limits.connectionIdleMs
  if (bounds) boundConnections(server, bounds)
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  /** The request of each connection that is arriving or not yet answered, with its response. */
  const asked = new WeakMap<Socket, [IncomingMessage, ServerResponse]>()
  server.prependListener('request', (message, response) => {
    const { socket } = message
    asked.set(socket, [message, response])
    const end = () => asked.get(socket)?.[0] === message && asked.delete(socket)
    response.once('close', () => (message.complete ? end() : message.once('close', end)))
    response.prependOnceListener('finish', () => !message.complete && passOver(message))
  })
  // Node would answer 417 without a body. An expectation may also be ignored (RFC 9110, section 10.1.1).
  server.on('checkExpectation', (message, response) => server.emit('request', message, response))
  server.on('clientError', (error, socket: Socket) => {
    const [message, response] = asked.get(socket) ?? []
    // The bytes may belong to a second request while the first one, perhaps a payment, is still running.
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
      // Node's own `close` of an HTTP server ends idle connections at once, even those on which a request is
      // arriving.
      const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))
      const notice = setTimeout(
        () => {
          // Browsers open connections in advance, and Node counts a connection without a request as busy.
          for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
          server.closeIdleConnections()
        },
        Math.min(drainBounds.noticeMs, ms),
      )
      const end = setTimeout(() => server.closeAllConnections(), ms)
      await closed
      clearTimeout(notice)
      clearTimeout(end)
    },
  }
}

/** Whether a request asks for a WebSocket, and nothing else, at the one path that has one. */
function isWebSocket(message: IncomingMessage): boolean {
  const { method, headers } = message
  const isAsked = method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'
  return isAsked && originForm(message).split('?', 1)[0] === '/graphql'
}

/**
 * Returns the target of a request as a path with its query, also where the request names the whole address
 * (RFC 9112, section 3.2.2) or, with `*`, none at all: the service has no such path.
 */
function originForm({ url = '/' }: IncomingMessage): string {
  const [, path = url] = /^https?:\/\/[^/?#]*(.*)$/i.exec(url) ?? []
  return path.startsWith('/') ? path : `/${path}`
}

/**
 * The interval at which the server looks for requests that passed their time limit. Node's default, 30 s, is
 * too slow.
 */
const timeoutSweepMs = 1_000
/**
 * Clients that are active send another request within this time, and learn that the connection ends with its
 * answer; then the silent connections are closed. Choice: half a second, because a stop should not take long.
 */
export const drainBounds = { noticeMs: 500 }

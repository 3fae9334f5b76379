import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { limits } from '../shared/limits.ts'
import { answerMalformed } from './malformed.ts'

/** The one HTTP server of the service. */
export interface HttpServer {
  server: Server
  /** The port it has, also where any free one was asked for. */
  port: number
  /** True once the service is ending: answers then close their connections. */
  isDraining(): boolean
  /** Takes no new connections, lets requests under way end, and closes what is left after `ms`. */
  drain(ms: number): Promise<void>
}

/**
 * Listens at once; requests wait for `listener`, so that the port is known while the rest starts.
 * @throws Error with `EADDRINUSE` where the port is taken
 */
export async function listenHttp(
  host: string,
  port: number,
  listener: Promise<RequestListener>,
): Promise<HttpServer> {
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
      maxHeaderSize: limits.headerMaxBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveMs,
    },
    (message: IncomingMessage, response: ServerResponse) => {
      if (draining) response.setHeader('Connection', 'close')
      if (handle) handle(message, response)
      else void listener.then((ready) => ready(message, response)).catch(() => response.destroy())
    },
  )
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  /** Connections on which an answer is awaited. */
  const busy = new WeakSet<Socket>()
  server.prependListener('request', ({ socket }, response) => {
    busy.add(socket)
    response.once('close', () => busy.delete(socket))
  })
  server.on('clientError', (error, socket: Socket) => answerMalformed(error, socket, busy.has(socket)))

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
    isDraining: () => draining,
    async drain(ms) {
      draining = true
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      // A connection that was busy becomes idle with its answer.
      const sweep = setInterval(() => server.closeIdleConnections(), idleSweepMs)
      const timer = setTimeout(() => server.closeAllConnections(), ms)
      const grace = setTimeout(() => {
        // Browsers open connections in advance, and Node counts what never asked anything as busy.
        for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
      }, unusedGraceMs)
      await closed
      clearInterval(sweep)
      clearTimeout(timer)
      clearTimeout(grace)
    },
  }
}

const idleSweepMs = 20
/** In this time a request that is on its way still arrives. */
const unusedGraceMs = 500

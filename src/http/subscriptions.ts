import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { GraphQLError } from 'graphql'
import { CloseCode, type Context as Client, makeServer, type Server as Protocol } from 'graphql-ws'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Services } from '../context.ts'
import { toGraphQLError } from '../graphql/errors.ts'
import { watchActor } from '../graphql/live-stream.ts'
import type { Operation, Operations } from '../graphql/operation.ts'
import { DomainError } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import { anonymousContext, signIn } from './request.ts'

/** GraphQL over WebSocket, on the server that also speaks HTTP. */
export interface Subscriptions {
  /** Closes every socket with 1001 and takes no new ones. */
  close(): Promise<void>
}

/** One socket. */
interface Connection {
  socket: WebSocket
  request: IncomingMessage
  /** Ends the watch over its token. */
  unwatch: () => void
}

type Params = Record<string, unknown> | undefined

/** Between an ended token and the end of its socket: the time in which each subscription says why it ends. */
const farewellMs = 100
/** Clients that do not answer a close are cut off. */
const closeMs = 1_000

/**
 * Serves `/graphql` over WebSockets (protocol `graphql-transport-ws`): subscriptions, queries and
 * mutations. The token comes as `authorization` of the connection's parameters, or as a header; a bad one
 * closes with 4403, and so does its end. Each operation has a context of its own, and is judged like one
 * over HTTP.
 */
export function serveSubscriptions(options: {
  services: Services
  operations: Operations
  server: Server
  /** For tests: how often a socket must show that it lives. */
  pingMs?: number
}): Subscriptions {
  const { services, operations, server, pingMs = limits.webSocketPingMs } = options
  const protocol = createProtocol(services, operations)
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.webSocketPayloadMaxBytes,
    handleProtocols: (offered) => (offered.has(protocolName) ? protocolName : false),
  })

  function upgrade(request: IncomingMessage, raw: Duplex, head: Buffer): void {
    if (request.url?.split('?', 1)[0] !== '/graphql') {
      // Node leaves an upgraded socket to us, its errors too: one that nobody hears would end the process.
      raw.on('error', () => raw.destroy())
      raw.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      return
    }
    sockets.handleUpgrade(request, raw, head, (socket) => {
      // What a client does wrong on the wire closes its socket; it is no failure of ours.
      socket.on('error', (error) => services.log.debug({ err: error }, 'a WebSocket failed'))
      speak(protocol, { socket, request, unwatch: () => {} }, services)
      keepAlive(socket, pingMs)
    })
  }

  server.on('upgrade', upgrade)
  return {
    async close() {
      server.off('upgrade', upgrade)
      for (const socket of sockets.clients) socket.close(1001, 'Going away')
      const timer = setTimeout(() => {
        for (const socket of sockets.clients) socket.terminate()
      }, closeMs)
      await new Promise<void>((resolve) => sockets.close(() => resolve()))
      clearTimeout(timer)
    },
  }
}

const protocolName = 'graphql-transport-ws'

function createProtocol(services: Services, operations: Operations): Protocol<Connection> {
  return makeServer<Params, Connection>({
    connectionInitWaitTimeout: limits.webSocketInitMs,
    onConnect: (client) => admit(services, client),
    onClose: (client) => client.extra.unwatch(),
    async onSubscribe(client, _id, request) {
      const anonymous = anonymousContext(services, client.extra.request, randomUUID())
      try {
        if (Object.keys(client.subscriptions).length > limits.webSocketOperationsMax) throw tooMany()
        return operations.read(request, await signIn(anonymous, authorizationOf(client)))
      } catch (error) {
        return [toGraphQLError(error, anonymous.requestId, anonymous.log)]
      }
    },
    execute: (operation) => operations.run(operation as unknown as Operation) as never,
    subscribe: (operation) => operations.run(operation as unknown as Operation) as never,
    // A stream that broke: what it threw may be shown as it is, and must not be wrapped.
    onError: (_client, _id, _request, errors) => errors.map((error) => shownCause(error).toJSON()),
  })
}

/**
 * @returns false, which closes with 4403, where the token is no good; without a token only public fields
 *   answer
 */
async function admit(services: Services, client: Client<Params, Connection>): Promise<boolean> {
  const { extra } = client
  const anonymous = anonymousContext(services, extra.request, randomUUID())
  try {
    const ctx = await signIn(anonymous, authorizationOf(client))
    if (!ctx.actor || extra.socket.readyState !== extra.socket.OPEN) return true
    extra.unwatch = watchActor(ctx, ctx.actor, () => {
      setTimeout(() => extra.socket.close(CloseCode.Forbidden, 'Forbidden'), farewellMs)
    })
    return true
  } catch (error) {
    if (error instanceof DomainError) return false
    anonymous.log.error({ err: error }, 'a WebSocket could not be signed in')
    extra.socket.close(CloseCode.InternalServerError, 'Internal server error')
    return false
  }
}

function authorizationOf({ connectionParams, extra }: Client<Params, Connection>): string | undefined {
  const given = connectionParams?.['authorization'] ?? connectionParams?.['Authorization']
  return typeof given === 'string' ? given : extra.request.headers.authorization
}

/**
 * Binds a socket to the protocol. An event is pulled only when the one before it has left for the network;
 * and while more than `limits.webSocketBufferMaxBytes` wait to leave, nothing more is read from the client
 * either.
 */
function speak(protocol: Protocol<Connection>, connection: Connection, services: Services): void {
  const { socket, request } = connection
  const gone = Promise.withResolvers<void>()
  const closed = protocol.opened(
    {
      protocol: socket.protocol,
      send: (data) =>
        new Promise((resolve) => {
          if (socket.readyState === socket.OPEN) socket.send(data, () => resolve())
          // Nothing more is pulled for a socket that closes.
          else void gone.promise.then(resolve)
        }),
      close: (code, reason) => socket.close(code, reason),
      onMessage(take) {
        socket.on('message', (data: Buffer) => {
          if (socket.bufferedAmount > limits.webSocketBufferMaxBytes && !socket.isPaused) {
            socket.pause()
            request.socket.once('drain', () => socket.resume())
          }
          take(data.toString()).catch((error: unknown) => {
            services.log.error({ err: error }, 'a WebSocket message failed')
            socket.close(CloseCode.InternalServerError, 'Internal server error')
          })
        })
      },
    },
    connection,
  )
  socket.once('close', (code, reason) => {
    closed(code, reason.toString()).catch((error: unknown) => {
      services.log.error({ err: error }, 'a WebSocket could not be closed')
    })
    gone.resolve()
  })
}

/**
 * Cuts off a client that has not answered the last ping by the time of the next: it is gone, or it has
 * stopped reading.
 */
function keepAlive(socket: WebSocket, everyMs: number): void {
  let isAlive = true
  const timer = setInterval(() => {
    if (!isAlive) return socket.terminate()
    isAlive = false
    socket.ping()
  }, everyMs)
  socket.on('pong', () => {
    isAlive = true
  })
  socket.once('close', () => clearInterval(timer))
}

function shownCause(error: GraphQLError): GraphQLError {
  return error.cause instanceof GraphQLError ? error.cause : error
}

function tooMany(): GraphQLError {
  return new GraphQLError(`A connection has at most ${limits.webSocketOperationsMax} operations under way.`, {
    extensions: { code: 'RATE_LIMITED' },
  })
}

import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ExecutionResult, GraphQLError } from 'graphql'
import { CloseCode, type Context as Client, makeServer, type Server as Protocol } from 'graphql-ws'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Actor } from '../identity/callers/actor.ts'
import { takeSlots } from '../limits/slot.ts'
import type { Services } from '../context.ts'
import type { Outlet } from '../graphql/broadcast.ts'
import { toGraphQLError } from '../graphql/errors.ts'
import { busyRefusal } from '../database/busy.ts'
import { watchActor } from '../graphql/live-stream.ts'
import type { CheckedOperation } from '../graphql/checked-operation.ts'
import { beforeDocument, type Operations } from '../graphql/operation.ts'
import { enter } from '../enter.ts'
import { DomainError } from '../shared/errors.ts'
import { readJsonText } from '../shared/json-body.ts'
import { limits } from '../shared/limits.ts'
import { closeConnection } from './close-connection.ts'
import { refusalText } from './malformed.ts'
import { anonymousContext } from './request.ts'

const webSocketsPerMerchantMax = 5_000

/**
 * The most running operations on one socket. Its token may have 20 subscriptions; the rest is for queries and
 * mutations.
 */
const webSocketOperationsMax = 64
const webSocketInitMs = 3_000
const webSocketPingMs = 15_000

/** The bytes that may wait in a socket before no more is read from its client. */
const webSocketBufferMaxBytes = 256 * 1_024

/** The WebSockets of GraphQL, on the server that also serves HTTP. */
export interface Subscriptions {
  /** Closes every socket with 1001 and accepts no new ones. */
  close(): Promise<void>
}

/** A socket and its resources. */
interface Connection {
  socket: WebSocket
  request: IncomingMessage
  /** Ends the watch over the socket's token. */
  unwatch: () => void
  /** Gives back the slots that the socket takes. */
  leave: () => void
  /** The number of sockets of each address, token and merchant. */
  taken: Map<string, number>
}

type Params = Record<string, unknown> | undefined

/**
 * The time between the end of a token and the end of its socket, in which each subscription reports why it
 * ends.
 */
const farewellMs = 100
/** The time after which a client that does not answer a close is cut off. */
const closeMs = 1_000

/**
 * Serves `/graphql` over WebSockets (protocol `graphql-transport-ws`): subscriptions, queries and mutations.
 * The token comes as `authorization` of the connection's parameters, or as a header. A socket closes with
 * 4403 if its token is not valid, and when its token ends. Each operation has a context of its own, and is
 * checked like an operation over HTTP.
 */
export function serveSubscriptions(options: {
  services: Services
  operations: Operations
  server: Server
  /** For tests: the pause between two pings. */
  pingMs?: number
}): Subscriptions {
  const { services, operations, server, pingMs = webSocketPingMs } = options
  const protocol = createProtocol(services, operations)
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.webSocketPayloadMaxBytes,
    // `ws` would close without a reason, and look at text frames only: see `messageProblem`.
    skipUTF8Validation: true,
    handleProtocols: (offered) => (offered.has(protocolName) ? protocolName : false),
  })

  const taken = new Map<string, number>()

  function upgrade(request: IncomingMessage, raw: Duplex, head: Buffer): void {
    const { clientAddress } = anonymousContext(services, request, randomUUID(), 'websocket')
    const slot = { key: `address ${clientAddress}`, max: limits.webSocketsPerAddressMax, whose: 'address' }
    const leave = takeSlots(taken, [slot])
    if (typeof leave !== 'function') {
      const headers = [`Retry-After: ${limits.overloadRetryS}`]
      return closeConnection(raw, refusalText('RATE_LIMITED', headers))
    }
    // The slot is given back even where the connection never becomes a WebSocket.
    raw.once('close', leave)
    sockets.handleUpgrade(request, raw, head, (socket) => {
      // A client's mistake in the protocol closes its socket; it is no error of the service.
      socket.on('error', (error) => services.log.debug({ err: error }, 'a WebSocket failed'))
      speak(protocol, { socket, request, unwatch: () => {}, leave, taken }, services)
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
    connectionInitWaitTimeout: webSocketInitMs,
    onConnect: (client) => admit(services, client),
    onClose({ extra }) {
      extra.unwatch()
      extra.leave()
    },
    async onSubscribe(client, id, request) {
      const anonymous = anonymousContext(services, client.extra.request, randomUUID(), 'websocket')
      try {
        if (Object.keys(client.subscriptions).length > webSocketOperationsMax) throw tooMany()
        const ctx = await enter(anonymous, beforeDocument(authorizationOf(client)))
        const read = await operations.read(request, ctx)
        return Array.isArray(read) ? read : { ...read, outlet: socketOutlet(client.extra, id) }
      } catch (error) {
        return [toGraphQLError(error, anonymous.requestId, anonymous.log)]
      }
    },
    execute: (operation) => operations.run(operation as unknown as CheckedOperation) as never,
    subscribe: (operation) => subscribe(operations, operation as unknown as SocketOperation) as never,
    // The errors of a stream that broke may be shown as they are, and must not be wrapped.
    onError: (_client, _id, _request, errors) => errors.map((error) => shownCause(error).toJSON()),
  })
}

interface SocketOperation extends CheckedOperation {
  outlet: Outlet
}

/**
 * Starts an operation. The protocol library gets an iterator without values, which only ends: the results are
 * written to the socket directly.
 * @returns the result where no stream could be opened
 */
async function subscribe(
  operations: Operations,
  operation: SocketOperation,
): Promise<ExecutionResult | AsyncIterableIterator<never, void, void>> {
  const opened = await operations.run(operation)
  if (!('deliver' in opened)) return opened
  const over = { done: true, value: undefined } as const
  const ending: AsyncIterableIterator<never, void, void> = {
    async next() {
      await opened.deliver(operation.outlet)
      return over
    },
    return() {
      opened.end()
      return Promise.resolve(over)
    },
    [Symbol.asyncIterator]: () => ending,
  }
  return ending
}

/**
 * Makes the outlet that writes results as whole WebSocket frames into the connection: `ws` would build each
 * frame anew for each of thousands of readers. `ws` also writes its own frames whole and at once, because
 * nothing is compressed, so that frames never mix.
 */
function socketOutlet({ socket, request }: Connection, id: string): Outlet {
  const connection = request.socket
  const opening = Buffer.from(`{"id":${JSON.stringify(id)},"type":"next","payload":`)
  return {
    send({ json }) {
      if (socket.readyState !== socket.OPEN) return false
      const length = opening.length + json.length + 1
      const head = frameHead(length)
      const frame = Buffer.allocUnsafe(head.length + length)
      frame.set(head, 0)
      frame.set(opening, head.length)
      frame.set(json, head.length + opening.length)
      frame[frame.length - 1] = closingBrace
      return connection.write(frame)
    },
    onRoom(listener) {
      connection.once('drain', listener)
      return () => connection.off('drain', listener)
    },
    cut: () => socket.terminate(),
  }
}

const closingBrace = 0x7d

/** Returns the beginning of an unmasked text frame (RFC 6455, section 5.2). */
function frameHead(length: number): Buffer {
  const finalText = 0x81
  if (length < 126) return Buffer.of(finalText, length)
  const isShort = length < 65_536
  const head = Buffer.alloc(isShort ? 4 : 10)
  head[0] = finalText
  head[1] = isShort ? 126 : 127
  if (isShort) head.writeUInt16BE(length, 2)
  else head.writeBigUInt64BE(BigInt(length), 2)
  return head
}

/**
 * Admits a client by its token; without a token only public fields answer.
 * @returns false where the token is not valid: the socket then closes with 4403
 */
async function admit(services: Services, client: Client<Params, Connection>): Promise<boolean> {
  const { extra } = client
  const anonymous = anonymousContext(services, extra.request, randomUUID(), 'websocket')
  try {
    const ctx = await enter(anonymous, beforeDocument(authorizationOf(client)))
    if (!ctx.actor || extra.socket.readyState !== extra.socket.OPEN) return true
    if (!seat(extra, ctx.actor)) {
      extra.socket.close(tryAgainLater, 'Too many connections')
      return false
    }
    extra.unwatch = watchActor(ctx, ctx.actor, () => {
      setTimeout(() => extra.socket.close(CloseCode.Forbidden, 'Forbidden'), farewellMs)
    })
    return true
  } catch (error) {
    if (error instanceof DomainError) return false
    const busy = busyRefusal(error)
    if (busy) {
      anonymous.log.warn({ err: error }, 'the database did not answer in time')
      extra.socket.close(tryAgainLater, busy.message)
      return false
    }
    anonymous.log.error({ err: error }, 'a WebSocket could not be signed in')
    extra.socket.close(CloseCode.InternalServerError, 'Internal server error')
    return false
  }
}

/** The close code in the registry of RFC 6455 after which clients reconnect by themselves. */
const tryAgainLater = 1013

/**
 * Takes a slot of the token and a slot of its merchant, and frees the slot of the address that the socket had
 * before it sent its token. Returns false where the token or the merchant has no free slot.
 */
function seat(connection: Connection, { tokenId, merchantId }: Actor): boolean {
  const leave = takeSlots(connection.taken, [
    { key: `token ${tokenId}`, max: limits.webSocketsPerTokenMax, whose: 'token' },
    { key: `merchant ${merchantId}`, max: webSocketsPerMerchantMax, whose: 'merchant' },
  ])
  if (typeof leave !== 'function') return false
  connection.leave()
  connection.leave = leave
  return true
}

function authorizationOf({ connectionParams, extra }: Client<Params, Connection>): string | undefined {
  const given = connectionParams?.['authorization'] ?? connectionParams?.['Authorization']
  return typeof given === 'string' ? given : extra.request.headers.authorization
}

/**
 * Connects a socket to the protocol. If more than `webSocketBufferMaxBytes` wait to be sent when a message
 * comes, no more is read from the client until all is sent.
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
          // While the socket closes, the promise stays open, so that no further result is taken.
          else void gone.promise.then(resolve)
        }),
      close: (code, reason) => socket.close(code, reason && closeReason(reason)),
      onMessage(take) {
        socket.on('message', (data: Buffer) => {
          if (socket.bufferedAmount > webSocketBufferMaxBytes && !socket.isPaused) {
            socket.pause()
            request.socket.once('drain', () => socket.resume())
          }
          // Messages behind one that closes the socket mean nothing any more.
          if (socket.readyState !== socket.OPEN) return
          const { text, problem } = readMessage(data)
          if (problem) return socket.close(...problem)
          take(text).catch((error: unknown) => {
            services.log.error({ err: error }, 'a WebSocket message could not be handled')
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
 * Reads a message by the rules that JSON has at every door.
 * @returns its text; or, as a `problem`, the code and the reason with which the socket closes
 */
function readMessage(
  message: Buffer,
): { text: string; problem?: never } | { text?: never; problem: [number, string] } {
  if (!isUtf8(message)) return { problem: [invalidData, 'The message is not JSON in UTF-8.'] }
  try {
    return { text: withText(readJsonText(message, 'The message')) }
  } catch (error) {
    if (!(error instanceof DomainError)) throw error
    return { problem: [CloseCode.BadRequest, closeReason(error.message)] }
  }
}

/**
 * Gives an operation that only a hash names an empty text, so that the operation is refused as over HTTP. For
 * an absent text the protocol library closes the socket with 4400, which ends the other operations on it.
 */
function withText(message: string): string {
  if (!message.includes('"persistedQuery"')) return message
  const sent = JSON.parse(message) as { type?: unknown; payload?: { query?: unknown } | null } | null
  const { type, payload } = sent ?? {}
  const isObject = typeof payload === 'object' && payload !== null && !Array.isArray(payload)
  if (type !== 'subscribe' || !isObject || payload.query != null) return message
  return JSON.stringify({ ...sent, payload: { ...payload, query: '' } })
}

/** The close code for data that do not fit the kind of their message (RFC 6455, section 7.4.1). */
const invalidData = 1007

/** Cuts a reason: a close frame holds 123 bytes of it (RFC 6455, section 5.5), and `ws` throws at more. */
function closeReason(text: string): string {
  return Buffer.from(text).subarray(0, 120).toString()
}

/**
 * Pings a client, and cuts it off where it has not answered a ping by the time of the next one: the client is
 * gone, or has stopped reading.
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
  return new GraphQLError(
    `A connection has at most ${webSocketOperationsMax} operations at a time. End one of them first.`,
    {
      extensions: { code: 'RATE_LIMITED' },
    },
  )
}

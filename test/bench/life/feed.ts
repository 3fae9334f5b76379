import { once } from 'node:events'
import { WebSocket } from 'ws'

/** Says when a subscriber saw the end of a payment. */
export interface SettledFeed {
  /** Resolves with the moment (`performance.now()`) at which the event came. */
  seen(key: string): Promise<number>
  close(): void
}

/** One subscription, and what its changes mean. */
export interface Watched {
  field: string
  selection: string
  /** @returns the key of what has ended, null while it goes on. @throws Error where it ended badly */
  ended(change: Record<string, unknown>): string | null
}

/** Clients come from so many addresses, because the service limits the WebSockets of one address. */
const addresses = 16

/**
 * Subscribes over a WebSocket for each token.
 * @param ports of the service's processes; the subscribers take turns
 */
export async function openFeed(
  ports: readonly number[],
  tokens: readonly string[],
  watched: Watched,
): Promise<SettledFeed> {
  const waiting = new Map<string, PromiseWithResolvers<number>>()
  /** The event may come before the answer that names its payment. */
  const of = (key: string) => {
    const known = waiting.get(key) ?? Promise.withResolvers<number>()
    waiting.set(key, known)
    return known
  }
  const hear = (change: Record<string, unknown>) => {
    const key = watched.ended(change)
    if (key !== null) of(key).resolve(performance.now())
  }
  const sockets = await Promise.all(
    tokens.map((token, index) => {
      const from = `127.0.0.${1 + (index % addresses)}`
      return subscribe({ port: ports[index % ports.length] ?? 0, from, token }, watched, hear)
    }),
  )
  return {
    async seen(key) {
      const moment = await of(key).promise
      waiting.delete(key)
      return moment
    },
    close() {
      for (const socket of sockets) socket.terminate()
    },
  }
}

async function subscribe(
  { port, from, token }: { port: number; from: string; token: string },
  { field, selection }: Watched,
  hear: (change: Record<string, unknown>) => void,
): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws', {
    localAddress: from,
  })
  await once(socket, 'open')
  const acknowledged = once(socket, 'message')
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }))
  await acknowledged
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Message
    if (message.type === 'ping') socket.send(JSON.stringify({ type: 'pong' }))
    const change = message.payload?.data?.[field]
    if (change) hear(change)
    else if (message.type !== 'ping') throw new Error(`The subscription said ${data.toString()}`)
  })
  const query = `subscription { ${field} { ${selection} } }`
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }))
  return socket
}

interface Message {
  type: string
  payload?: { data?: Record<string, Record<string, unknown>> }
}

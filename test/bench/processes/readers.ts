import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { childOptions } from '../child.ts'

/** One group of readers, on plain connections: what a library costs must not be measured. */
export interface ReadersOptions {
  port: number
  count: number
  /** They share these; without any they say nothing at all. */
  tokens: readonly string[]
}

export type ReadersQuestion =
  /** Answered with the bytes of a frame, once every reader has had one since it was last asked. */
  { arrivals: true }

const { port, count, tokens } = childOptions() as ReadersOptions
const query =
  'subscription { transactionChanged { sequence cursor type status reference amount occurredAt } }'

/** When each reader got something since it was last asked, in nanoseconds of the system's clock. */
let times: number[] = []
let bytes = 0
let answer: (() => void) | null = null

/** A ping may come by itself, or in one part with an event, before or after it. */
function arrive(this: Socket, part: Buffer): void {
  if (part[0] === ping || part.at(-2) === ping) this.write(pong)
  if (part.length === pingBytes) return
  times.push(Number(process.hrtime.bigint()))
  bytes = part.length
  if (times.length === count) answer?.()
}

const answerMs = 2_000
const ping = 0x89
/** The length of an empty ping. */
const pingBytes = 2
const pong = Buffer.from([0x8a, 0x80, 0, 0, 0, 0])

/** A text frame as clients send it, with a mask of zeros. */
function frame(message: object): Buffer {
  const text = Buffer.from(JSON.stringify(message))
  const head =
    text.length < 126 ? [0x81, 0x80 | text.length] : [0x81, 0xfe, text.length >> 8, text.length & 255]
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), text])
}

/** Opens one that answers: on a busy machine the service may have given one up. */
async function open(index: number): Promise<Socket> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await openOnce(index)
    } catch (error) {
      if (attempt === 5) throw error
    }
  }
}

async function openOnce(index: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  socket.on('error', () => {})
  await once(socket, 'connect', { signal: AbortSignal.timeout(answerMs) })
  const token = tokens[index % tokens.length]
  try {
    if (token !== undefined) await subscribe(socket, token)
  } catch (error) {
    socket.destroy()
    throw error
  }
  socket.on('data', arrive)
  return socket
}

async function subscribe(socket: Socket, token: string): Promise<void> {
  const lines = [
    'GET /graphql HTTP/1.1',
    'Host: 127.0.0.1',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol: graphql-transport-ws',
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  await once(socket, 'data', { signal: AbortSignal.timeout(answerMs) })
  socket.write(frame({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }))
  await once(socket, 'data', { signal: AbortSignal.timeout(answerMs) })
  socket.write(frame({ id: randomUUID(), type: 'subscribe', payload: { query } }))
}

const opening = 25
/** Below the rate at which a merchant may open subscriptions. */
const pauseMs = tokens.length > 0 ? 130 : 0
const sockets: Socket[] = []
for (let first = 0; first < count; first += opening) {
  const size = Math.min(opening, count - first)
  sockets.push(...(await Promise.all(Array.from({ length: size }, (_, index) => open(first + index)))))
  await new Promise((resolve) => setTimeout(resolve, pauseMs))
}

process.on('message', () => {
  answer = () => {
    answer = null
    const seen = times
    times = []
    process.send?.({ times: seen, bytes })
  }
  if (times.length === count) answer()
})
process.on('disconnect', () => process.exit())
process.send?.({})

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
  /** Merchants whose readers they are, with as many tokens each; events go to each merchant in turn. */
  groups: number
}

/** Asks about so many events, from the one after those of the last question. */
export interface ReadersQuestion {
  events: number
  /** It answers after this time, also where some have not come. */
  withinMs: number
}

export interface ReadersAnswer {
  /** When 99 of 100 readers had each event, in nanoseconds of the system's clock; null where they had not. */
  moments: (number | null)[]
  /** The length of one frame. */
  bytes: number
}

const { port, count, tokens, groups } = childOptions() as ReadersOptions
const query =
  'subscription { transactionChanged { sequence cursor type status reference amount occurredAt } }'

/** When the readers got each event, from `firstEvent` on. */
const arrivals = new Map<number, number[]>()
/** Readers of one event. */
const each = count / groups
let firstEvent = 0
let bytes = 0
let whole: (() => void) | null = null

/** Counts the events of one reader: parts of the stream may hold several frames, or some of one. */
function counter(socket: Socket, group: number): (part: Buffer) => void {
  let event = group
  let kept: Buffer = Buffer.alloc(0)
  return (part) => {
    kept = kept.length === 0 ? part : Buffer.concat([kept, part])
    for (let length = frameLength(kept); length !== null && length <= kept.length; ) {
      if (kept[0] === ping) socket.write(pong)
      else {
        arrive(event, length)
        event += groups
      }
      kept = kept.subarray(length)
      length = frameLength(kept)
    }
  }
}

function arrive(event: number, length: number): void {
  bytes = length
  const times = arrivals.get(event) ?? []
  arrivals.set(event, times)
  times.push(Number(process.hrtime.bigint()))
  if (times.length === each) whole?.()
}

/** @returns null where its head has not come whole */
function frameLength(data: Buffer): number | null {
  if (data.length < 4) return data.length === 2 && data[1] === 0 ? pingBytes : null
  const short = (data[1] ?? 0) & 127
  return short < 126 ? 2 + short : 4 + data.readUInt16BE(2)
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
  const group =
    tokens.length > 0 ? Math.floor(((index % tokens.length) * groups) / tokens.length) : index % groups
  try {
    if (token !== undefined) await subscribe(socket, token)
    else socket.write(Buffer.from([group]))
  } catch (error) {
    socket.destroy()
    throw error
  }
  socket.on('data', counter(socket, group))
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

/** Waits until every reader has the events, or the time is over. */
async function answer({ events, withinMs }: ReadersQuestion): Promise<ReadersAnswer> {
  const numbers = Array.from({ length: events }, (_none, n) => firstEvent + n)
  const isWhole = () => numbers.every((event) => arrivals.get(event)?.length === each)
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, withinMs)
    whole = () => {
      if (arrivals.get(firstEvent + events - 1)?.length !== each || !isWhole()) return
      clearTimeout(timer)
      resolve()
    }
    whole()
  })
  whole = null
  const moments = numbers.map((event) => {
    const times = (arrivals.get(event) ?? []).toSorted((a, b) => a - b)
    arrivals.delete(event)
    return times[Math.ceil(each * 0.99) - 1] ?? null
  })
  firstEvent += events
  return { moments, bytes }
}

process.on('message', (question: ReadersQuestion) => {
  void answer(question).then((answered) => process.send?.(answered))
})
process.on('disconnect', () => process.exit())
process.send?.({})

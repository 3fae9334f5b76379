import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Measurement } from './rounds.ts'

/** One request, as it goes over the wire. */
export interface Request {
  method: string
  path: string
  headers?: Record<string, string>
  body?: string
}

/**
 * Sends requests over keep-alive connections for some seconds, one at a time on each.
 * @param options.next the next request of all connections
 * @returns requests per second
 * @throws Error where an answer has not the expected status: who refuses is no contender
 */
export async function load(options: {
  port: number
  connections: number
  seconds: number
  /** The status that each answer must have; null: any success. */
  status: number | null
  /** Words that each answer must have. */
  words?: string
  next: () => Request
}): Promise<Timed> {
  const { port, connections, seconds, status, words = '', next } = options
  const wires = await Promise.all(Array.from({ length: connections }, () => openWire(port)))
  const result = await repeat({ seconds, width: connections }, async (_n, place) => {
    const answer = await (wires[place] as Wire).send(next())
    const isExpected = status === null ? answer.status < 300 : answer.status === status
    if (!isExpected || !answer.text.includes(words))
      throw new Error(`Answered ${answer.status}: ${answer.text}`)
  })
  for (const wire of wires) wire.close()
  return result
}

/** Acts again and again, some at once, until the time is over or it was done so often. */
export async function repeat(
  bounds: { seconds?: number | undefined; count?: number | undefined; width?: number },
  act: (n: number, place: number) => Promise<unknown>,
): Promise<Timed> {
  const { seconds = Infinity, count = Infinity, width = 1 } = bounds
  const durations: number[] = []
  const begun = performance.now()
  let next = 0
  await Promise.all(
    Array.from({ length: width }, async (_none, place) => {
      while (next < count && performance.now() - begun < seconds * 1_000) {
        const sent = performance.now()
        await act(next++, place)
        durations.push(performance.now() - sent)
      }
    }),
  )
  return measured(durations, begun)
}

/** Acts per second, and how long one took. */
export interface Timed extends Measurement {
  medianMs: number
}

export function measured(durations: readonly number[], begun: number): Timed {
  return {
    value: durations.length / ((performance.now() - begun) / 1_000),
    operations: durations.length,
    p99Ms: quantile(durations, 0.99),
    medianMs: quantile(durations, 0.5),
  }
}

/** Payments to settle: ids that follow one another, as text. */
export interface Settling {
  first: string
  count: number
  seconds: number
  /** How many at once. */
  width: number
}

/**
 * Settles one payment after the other, some at once, until the time or the payments are over.
 * @throws Error where one was not open any more
 */
export function settleAll(
  { first, ...bounds }: Settling,
  settle: (id: bigint) => Promise<boolean>,
): Promise<Timed> {
  return repeat(bounds, async (n) => {
    const id = BigInt(first) + BigInt(n)
    if (!(await settle(id))) throw new Error(`Payment ${id} was settled before.`)
  })
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export interface LoadAnswer {
  status: number
  /** Head and body. */
  text: string
}

/** One connection of its own; a client library would take more of the machine than what is measured. */
export interface Wire {
  send(request: Request): Promise<LoadAnswer>
  close(): void
}

export async function openWire(port: number): Promise<Wire> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  const read = answersOf(socket)
  return {
    send({ method, path, headers = {}, body }) {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      const length =
        body === undefined
          ? ''
          : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
      socket.write(`${method} ${path} HTTP/1.1\r\nHost: bench\r\n${lines.join('')}${length}\r\n${body ?? ''}`)
      return read()
    },
    close: () => socket.destroy(),
  }
}

function answersOf(socket: Socket): () => Promise<LoadAnswer> {
  let text = ''
  let waiting: PromiseWithResolvers<LoadAnswer> | null = null
  const fail = (error?: Error) => waiting?.reject(error ?? new Error('The connection was closed.'))
  socket.setEncoding('latin1')
  socket.on('error', fail)
  socket.on('close', () => fail())
  socket.on('data', (chunk: string) => {
    text += chunk
    if (!isWhole(text)) return
    const answer = { status: Number(text.slice(9, 12)), text }
    text = ''
    waiting?.resolve(answer)
  })
  return () => {
    waiting = Promise.withResolvers<LoadAnswer>()
    return waiting.promise
  }
}

function isWhole(text: string): boolean {
  const head = text.indexOf('\r\n\r\n')
  if (head < 0) return false
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, head))?.[1]
  return length === undefined ? text.endsWith('0\r\n\r\n') : text.length >= head + 4 + Number(length)
}

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
  next: () => Request
}): Promise<Measurement> {
  const { port, connections, seconds, status, next } = options
  const wires = await Promise.all(Array.from({ length: connections }, () => openWire(port)))
  const durations: number[] = []
  const begun = performance.now()
  const end = begun + seconds * 1_000
  await Promise.all(
    wires.map(async (wire) => {
      while (performance.now() < end) {
        const sent = performance.now()
        const answer = await wire.send(next())
        durations.push(performance.now() - sent)
        const isExpected = status === null ? answer.status < 300 : answer.status === status
        if (!isExpected) throw new Error(`Answered ${answer.status}: ${answer.text}`)
      }
    }),
  )
  const elapsedS = (performance.now() - begun) / 1_000
  for (const wire of wires) wire.close()
  return {
    value: durations.length / elapsedS,
    operations: durations.length,
    p99Ms: quantile(durations, 0.99),
  }
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

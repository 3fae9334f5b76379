import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, createServer as createPlainServer, type Server, type Socket } from 'node:net'
import pg from 'pg'
import { Agent } from 'undici'
import { childOptions } from '../child.ts'
import { openOperator } from '../limit-operator.ts'
import {
  collecting,
  delivering,
  depositing,
  nesting,
  payingBatch,
  payingOut,
  settling,
} from '../limit-statements.ts'
import { measured, repeat, type Settling, settleAll } from '../load.ts'
import { actAtRate, type Pace } from '../pace.ts'

export interface LimitOptions {
  workload: keyof typeof limits
  databaseUrl?: string
  operatorsUrl?: string
  /** Calls of `bulk` that are under way together. */
  callsAtOnce?: number
  /** The page of `page`. */
  file?: string
  /** The receiver of `webhooks`. */
  url?: string
}

/** Each kind of limit is asked for its own. */
export interface LimitQuestion {
  seconds?: number
  count?: number
  settling?: Settling
  /** One event, or some at a rate to each group in turn. Answered with the moments at which they began. */
  event?: { bytes: number; pace?: Pace; groups?: number }
}

export interface LimitReady {
  port: number
}

interface Given extends Required<Omit<LimitOptions, 'workload' | 'databaseUrl'>> {
  pool: pg.Pool
}

/** The hand-written minimum of one workload: it serves requests, answers questions, or both. */
interface Limit {
  tables?: string
  connections?: number
  open(given: Given): Opened | Promise<Opened>
}

interface Opened {
  server?: Server
  answer?: (question: LimitQuestion) => Promise<unknown>
}

const limits = {
  /** One named statement for each request; it knows no tokens. */
  collect: {
    tables: collecting.tables,
    open: ({ pool }) => ({
      server: serveJson(async (message) => {
        const payment = await readPayment(message)
        if (!payment) return [400, { success: false }]
        const values = [...payment.values, payment.text]
        const { rows } = await pool.query<Made>({ name: 'collect', text: collecting.collect, values })
        return rows[0] ? [202, told(rows[0], payment, 'pending')] : [409, { success: false }]
      }),
    }),
  },
  /** The least between two commits: the answer of the operator. It knows no tokens, and no failures. */
  deposit: {
    tables: depositing.tables,
    async open({ pool, operatorsUrl }) {
      const send = await openOperator(operatorsUrl)
      const server = serveJson(async (message) => {
        const payment = await readPayment(message)
        if (!payment) return [400, { success: false }]
        const correlationId = randomUUID()
        const values = [...payment.values, correlationId, payment.text]
        const { rows } = await pool.query<Made>({ name: 'reserve', text: depositing.reserve, values })
        const [made] = rows
        if (!made) return [400, { success: false }]
        const paid = await send(correlationId, Number(payment.amount), payment.phone)
        await pool.query({ name: 'settle', text: depositing.settle, values: [made.id, paid] })
        return [200, told(made, payment, 'success')]
      })
      return { server }
    },
  },
  settle: {
    tables: settling.tables,
    open: ({ pool }) => ({
      answer: ({ settling: payments = nothing }) =>
        settleAll(payments, async (id) => {
          const { rows } = await pool.query<{ moved: boolean }>({
            name: 'settle',
            text: settling.settle,
            values: [id],
          })
          return rows[0]?.moved === true
        }),
    }),
  },
  payouts: {
    tables: payingOut.tables,
    async open({ pool, operatorsUrl }) {
      const send = await openOperator(operatorsUrl)
      return {
        async answer({ seconds = 0 }) {
          const durations: number[] = []
          const begun = performance.now()
          for (let more = true; more && isBefore(begun, seconds); ) {
            const at = performance.now()
            const { rows } = await pool.query<Due>({ name: 'take', text: payingOut.take })
            await Promise.all(
              rows.map(async ({ id, name, amount, phone }) => {
                const values = [id, await send(name, amount, phone)]
                await pool.query({ name: 'settle', text: payingOut.settle, values })
                durations.push(performance.now() - at)
              }),
            )
            more = rows.length > 0
          }
          return measured(durations, begun)
        },
      }
    },
  },
  /** So many calls at once as the service makes for one batch. A crash loses money. */
  bulk: {
    tables: payingBatch.tables,
    connections: 4,
    async open({ pool, operatorsUrl, callsAtOnce }) {
      const send = await openOperator(operatorsUrl)
      const note = (paid: { id: string; reference: string }[]) => {
        const values = [paid.map(({ id }) => id), paid.map(({ reference }) => reference)]
        return pool.query({ name: 'note', text: payingBatch.note, values })
      }
      return {
        async answer({ seconds = 0 }) {
          const durations: number[] = []
          const begun = performance.now()
          const { rows } = await pool.query<Due>(payingBatch.read)
          const paid: { id: string; reference: string }[] = []
          const queue = rows.values()
          const pay = async () => {
            for (const { id, name, amount, phone } of queue) {
              const at = performance.now()
              paid.push({ id, reference: await send(name, amount, phone) })
              durations.push(performance.now() - at)
              if (paid.length >= 500) await note(paid.splice(0))
              if (!isBefore(begun, seconds)) return
            }
          }
          await Promise.all(Array.from({ length: callsAtOnce }, pay))
          await note(paid)
          return measured(durations, begun)
        },
      }
    },
  },
  /** Each event is made into a body, signed as the service signs it, posted, and noted. */
  webhooks: {
    tables: delivering.tables,
    connections: 1,
    open({ pool, url }) {
      const { origin, pathname: path } = new URL(url)
      const agent = new Agent({ pipelining: 1 })
      const keys = { secret: `whsec_${randomBytes(32).toString('base64')}`, key: randomBytes(32) }
      let sent = 0
      const deliver = async () => {
        sent += 1
        const at = new Date()
        const { body, headers } = signed(sent, at, keys)
        const begun = performance.now()
        const answer = await agent.request({ origin, path, method: 'POST', headers, body })
        const text = await answer.body.text()
        const tookMs = Math.round(performance.now() - begun)
        const values = [sent, answer.statusCode, tookMs, text, at]
        await pool.query({ name: 'note', text: delivering.note, values })
      }
      return { answer: ({ seconds, count }) => repeat({ seconds, count }, deliver) }
    },
  },
  /** A receiver that is as fast as one can be: it takes everything, and looks at nothing. */
  receiver: {
    open: () => ({
      server: createServer((request, response) => {
        request.resume()
        request.once('end', () => response.writeHead(204).end())
      }),
    }),
  },
  nested: {
    open: ({ pool }) => ({
      server: serveJson(async ({ url = '/' }) => {
        const { pathname, searchParams } = new URL(url, 'http://limit')
        const name = pathname === '/batches' ? 'batches' : 'transactions'
        const values = [Number(searchParams.get('merchant'))]
        const { rows } = await pool.query<{ answer: string }>({ name, text: nesting[name], values })
        return [200, rows[0]?.answer ?? '']
      }),
    }),
  },
  /**
   * The properties of the file were read once, as sirv does in production; `/disk` streams it anew for each
   * request, as sirv does too, and `/memory` answers with the bytes that were read at the start.
   */
  page: {
    open({ file }) {
      const { size, mtime } = statSync(file)
      const content = readFileSync(file)
      const headers = {
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Length': size,
        'Last-Modified': mtime.toUTCString(),
        ETag: `W/"${size}-${mtime.getTime()}"`,
        'Cache-Control': 'no-cache',
      }
      const server = createServer((message, response) => {
        if (message.url === '/disk') createReadStream(file).pipe(response.writeHead(200, headers))
        else if (message.url === '/memory') response.writeHead(200, headers).end(content)
        else response.writeHead(404).end()
      })
      return { server }
    },
  },
  /** One buffer, written to every connection. Readers of several groups say their own. */
  subscribe: {
    open() {
      const sockets = new Map<Socket, number>()
      const server = createPlainServer((socket) => {
        socket.setNoDelay(true)
        socket.on('error', () => {})
        socket.on('close', () => sockets.delete(socket))
        sockets.set(socket, 0)
        socket.on('data', (part) => sockets.set(socket, part[0] ?? 0))
      })
      const write = (bytes: number, group: number) => {
        const frame = frameOf(bytes)
        for (const [socket, own] of sockets) if (own === group) socket.write(frame)
      }
      return {
        server,
        async answer({ event: { bytes, pace, groups = 1 } = { bytes: 0 } }) {
          const began = Number(process.hrtime.bigint())
          if (pace) return actAtRate(pace, (n) => write(bytes, n % groups))
          write(bytes, 0)
          return [began]
        },
      }
    },
  },
} satisfies Record<string, Limit>

const nothing: Settling = { first: '0', count: 0, seconds: 0, width: 0 }

interface Made {
  id: string
  created_at: Date
}

/** A payment to a customer that has to be made. */
interface Due {
  id: string
  name: string
  amount: number
  phone: string
}

function isBefore(begun: number, seconds: number): boolean {
  return performance.now() - begun < seconds * 1_000
}

/** @returns the payment with its values in the order of the statements; null where it is none */
async function readPayment(message: IncomingMessage) {
  const parts: Buffer[] = []
  for await (const part of message as AsyncIterable<Buffer>) parts.push(part)
  const body = JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>
  const { amount, customer_phone: digits, payment_method: method, reference } = body
  if (!Number.isInteger(amount) || typeof reference !== 'string' || !/^\d{8}$/.test(String(digits)))
    return null
  const phone = `+223${String(digits)}`
  const values = [Number(message.headers['x-merchant']), method, phone, amount, reference]
  return { amount, phone, reference, values, text: JSON.stringify(body) }
}

function told(made: Made, { reference, amount }: { reference: string; amount: unknown }, status: string) {
  const data = { transaction_id: Number(made.id), reference, amount, status, initiated_at: made.created_at }
  return { success: true, data }
}

function serveJson(answer: (message: IncomingMessage) => Promise<[status: number, body: object | string]>) {
  return createServer((message, response) => {
    void answer(message)
      .catch((error: unknown) => [500, { error: String(error) }] as const)
      .then(([status, body]) => {
        response.writeHead(status, { 'Content-Type': 'application/json' })
        response.end(typeof body === 'string' ? body : JSON.stringify(body))
      })
  })
}

function signed(sent: number, at: Date, { secret, key }: { secret: string; key: Buffer }) {
  const data = { transaction_id: sent, reference: `R-${sent}`, amount: 5_000, currency: 'XOF' }
  const event = { id: `evt_${sent}`, event: 'payment_received', data, timestamp: at.toISOString() }
  const body = Buffer.from(JSON.stringify({ ...event, merchant_id: 1, sequence: sent }))
  const seconds = String(Math.floor(at.getTime() / 1_000))
  const standard = createHmac('sha256', key).update(`evt_${sent}.${seconds}.`).update(body).digest('base64')
  const headers = {
    'content-type': 'application/json',
    'x-service-event': 'payment_received',
    'x-service-signature': createHmac('sha256', secret).update(body).digest('hex'),
    'webhook-id': `evt_${sent}`,
    'webhook-timestamp': seconds,
    'webhook-signature': `v1,${standard}`,
  }
  return { body, headers }
}

/** A text frame of WebSockets, so that both kinds of readers count alike. */
function frameOf(bytes: number): Buffer {
  const frame = Buffer.alloc(bytes, 'x')
  frame[0] = 0x81
  if (bytes < 128) frame[1] = bytes - 2
  else {
    frame[1] = 126
    frame.writeUInt16BE(bytes - 4, 2)
  }
  return frame
}

const { workload, databaseUrl, ...options } = childOptions() as LimitOptions
const limit: Limit = limits[workload]
const pool = new pg.Pool({ connectionString: databaseUrl, max: limit.connections ?? 16 })
if (limit.tables) await pool.query(limit.tables)
const { server, answer } = await limit.open({
  operatorsUrl: '',
  callsAtOnce: 1,
  file: '',
  url: '',
  ...options,
  pool,
})
process.on('message', (question: LimitQuestion) => {
  void answer?.(question).then((said) => process.send?.(said))
})
process.on('disconnect', () => process.exit())
if (server)
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
    process.send?.({ port: (server.address() as AddressInfo).port } satisfies LimitReady)
  })
else process.send?.({ port: 0 } satisfies LimitReady)

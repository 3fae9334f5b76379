import { timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http'
import { signedHeaders } from '../../resources/webhooks/sign.ts'
import type { Secret } from '../../shared/secret.ts'
import { Stop } from '../client-program.ts'

/** What arrived, and what is wrong with it. Its words are fit for a terminal. */
export interface ReceivedEvent {
  /** Null where its signatures are good. */
  problem: string | null
  id: string
  event: string
  sequence: number | null
  amount: number | null
  /** The reference, or the message of what has none. */
  about: string
}

/** Choice: several times what the largest event has. */
const bodyMaxBytes = 1_024 * 1_024
/** What Standard Webhooks grant a clock. */
const toleranceS = 5 * 60

/**
 * Receives events on this machine, as a merchant's server does: reads the raw bytes, verifies them, answers.
 * @param secret null until it is known
 * @throws Stop where the port is taken
 */
export async function startReceiver(
  port: number,
  secret: () => Secret | null,
  hear: (heard: ReceivedEvent) => void,
): Promise<Server> {
  const server = createServer((request, response) => {
    receive(request, secret()).then(
      (heard) => {
        hear(heard)
        response.writeHead(heard.problem === null ? 204 : 401).end()
      },
      () => request.destroy(),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', () => reject(new Stop(`Port ${port} is taken: choose another one with --port.`)))
    server.listen(port, '127.0.0.1', resolve)
  })
  return server
}

async function receive(request: IncomingMessage, secret: Secret | null): Promise<ReceivedEvent> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > bodyMaxBytes) throw new Error('The body is too large.')
    chunks.push(chunk)
  }
  const body = Buffer.concat(chunks)
  const { id, event, sequence, data } = objectOf(parse(body))
  const { amount, reference, message } = objectOf(data)
  return {
    problem: secret ? problemOf(request.headers, body, secret) : 'came before its secret was known',
    id: words(id),
    event: words(event),
    sequence: typeof sequence === 'number' ? sequence : null,
    amount: typeof amount === 'number' ? amount : null,
    about: words(reference ?? message),
  }
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return null
  }
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/** Anybody may send something here: nothing of it may move the cursor. */
function words(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 100).replaceAll(/\p{C}/gu, '') : ''
}

/** What is wrong with a delivery; null where both of its signatures hold. */
function problemOf(headers: IncomingHttpHeaders, body: Buffer, secret: Secret): string | null {
  const given = (name: string) => String(headers[name] ?? '')
  const [id, seconds, type] = [
    given('webhook-id'),
    Number(given('webhook-timestamp')),
    given('x-service-event'),
  ]
  if (!id || !given('webhook-signature') || !given('x-service-signature')) return 'is not signed'
  if (!(Math.abs(Date.now() / 1_000 - seconds) <= toleranceS))
    return 'is older than five minutes, or of a time to come'
  const own = signedHeaders({ id, type }, body, { secret }, new Date(seconds * 1_000))
  const isOurs = (name: string, values: readonly string[]) =>
    values.some((value) => isEqual(value, own[name] ?? ''))
  if (!isOurs('webhook-signature', given('webhook-signature').split(' ')))
    return 'webhook-signature is of another secret, or of other bytes'
  const plain = [given('x-service-signature'), given('x-service-signature-next')]
  return isOurs('x-service-signature', plain)
    ? null
    : 'X-Service-Signature is of another secret, or of other bytes'
}

function isEqual(given: string, own: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(own)]
  return a.length === b.length && timingSafeEqual(a, b)
}

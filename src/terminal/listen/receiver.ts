import { timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http'
import { signedHeaders } from '../../resources/webhooks/sign.ts'
import type { Secret } from '../../shared/secret.ts'
import { Stop } from '../client-program.ts'

/** An event that arrived, with the problem of its signatures, if any. Its texts are safe for a terminal. */
export interface ReceivedEvent {
  /** Null if both signatures are valid. */
  problem: string | null
  id: string
  event: string
  sequence: number | null
  amount: number | null
  /** The reference; for an event without one, its message. */
  about: string
}

/** The largest body that is read. Choice: several times the size of the largest event. */
const bodyMaxBytes = 1_024 * 1_024
/** The largest difference between the time in a delivery and this machine's clock. */
const toleranceS = 5 * 60

/**
 * Receives events on this machine as a merchant's server does: reads the raw bytes, verifies them, answers.
 * @param secret returns null until the secret is known
 * @throws Stop if the port is taken
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

/** Removes control characters: any program may send an event here, and must not control the terminal. */
function words(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 100).replaceAll(/\p{C}/gu, '') : ''
}

/** Returns the problem of a delivery; null if both of its signatures are valid. */
function problemOf(headers: IncomingHttpHeaders, body: Buffer, secret: Secret): string | null {
  const given = (name: string) => String(headers[name] ?? '')
  const [id, seconds, type] = [
    given('webhook-id'),
    Number(given('webhook-timestamp')),
    given('x-service-event'),
  ]
  if (!id || !given('webhook-signature') || !given('x-service-signature')) return 'is not signed'
  if (!(Math.abs(Date.now() / 1_000 - seconds) <= toleranceS))
    return 'is older than five minutes, or from the future'
  const own = signedHeaders({ id, type }, body, { secret }, new Date(seconds * 1_000))
  const isOurs = (name: string, values: readonly string[]) =>
    values.some((value) => isEqual(value, own[name] ?? ''))
  if (!isOurs('webhook-signature', given('webhook-signature').split(' ')))
    return 'webhook-signature has another secret, or other bytes'
  const plain = [given('x-service-signature'), given('x-service-signature-next')]
  return isOurs('x-service-signature', plain)
    ? null
    : 'X-Service-Signature has another secret, or other bytes'
}

function isEqual(given: string, own: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(own)]
  return a.length === b.length && timingSafeEqual(a, b)
}

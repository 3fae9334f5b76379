import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createSecretKey, randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import {
  type CheckoutSettings,
  type GsmaSettings,
  type OperatorSettings,
  sandboxOperators,
} from '../../src/config/operators.ts'
import type {
  CallContext,
  DriverDeps,
  OperatorExchange,
  OperatorHandle,
} from '../../src/operators/operator.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { patienceMs } from './eventually.ts'

export const customer = '+22370000001'
export const controlToken = 'sandbox-control'

/** A request as a scripted server saw it. */
export interface Seen {
  method: string
  path: string
  headers: IncomingMessage['headers']
  body: string
}
export type FaultAct = (response: ServerResponse, seen: Seen) => void

/** Starts an operator that acts as the test says, over a real socket. */
export async function scriptedOperator(act: FaultAct): Promise<{ url: string; seen: Seen[]; act: FaultAct }> {
  const script: { url: string; seen: Seen[]; act: FaultAct } = { url: '', seen: [], act }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request
      const seen = { method, path, headers, body: Buffer.concat(chunks).toString() }
      if (path.endsWith('/token'))
        return reply(200, { access_token: `token-${script.seen.length}`, expires_in: 3600 })(response, seen)
      script.seen.push(seen)
      return script.act(response, seen)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  script.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return script
}

export function reply(status: number, body: unknown, headers: Record<string, string> = {}): FaultAct {
  return (response) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
  }
}

/** Faults of networks and gateways, each with the cause that a money call must then report. */
export const faults: readonly { name: string; act: FaultAct; cause: string }[] = [
  {
    name: 'the connection closed after the body',
    act: (response) => response.destroy(),
    cause: 'response_lost',
  },
  { name: 'silence', act: () => undefined, cause: 'headers_timeout' },
  { name: 'a body that drips', act: drip, cause: 'body_timeout' },
  {
    name: 'a well-formed 500',
    act: reply(500, { errorCategory: 'internal', errorCode: 'genericError' }),
    cause: 'http_5xx',
  },
  { name: 'a 503 of a gateway', act: reply(503, '<html>Service Unavailable</html>'), cause: 'http_5xx' },
  { name: 'an HTML page with status 200', act: reply(200, '<html>Welcome</html>'), cause: 'unreadable' },
  { name: 'an HTML page with status 404', act: reply(404, '<html>Not Found</html>'), cause: 'unreadable' },
  { name: 'an empty 201', act: reply(201, ''), cause: 'unreadable' },
  { name: 'a JSON array', act: reply(201, []), cause: 'unreadable' },
  { name: 'an answer that is cut off', act: truncate, cause: 'response_lost' },
  {
    name: 'an answer that is no HTTP',
    act: (response) => response.socket?.end('SSH-2.0-x\r\n\r\n'),
    cause: 'unreadable',
  },
  { name: 'an answer without end', act: reply(200, `"${'x'.repeat(300 * 1_024)}"`), cause: 'unreadable' },
]

function drip(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  const timer = setInterval(() => response.write(' '), 50)
  response.on('close', () => clearInterval(timer))
}

function truncate(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' })
  response.write('{"status":"pen', () => response.destroy())
}

export function call(
  more: Partial<CallContext> & { ms?: number } = {},
): CallContext & { exchanges: OperatorExchange[] } {
  const exchanges: OperatorExchange[] = []
  const { ms = patienceMs, ...rest } = more
  return {
    deadline: new Date(Date.now() + ms),
    priority: 'interactive',
    record: (exchange) => exchanges.push(exchange),
    exchanges,
    ...rest,
  }
}

export function newHandle(): OperatorHandle {
  return { correlationId: randomUUID(), clientRef: `ref-${randomUUID()}` }
}

export const deps: DriverDeps = {
  log: createLog('silent'),
  clock: systemClock,
  callbackUrl: 'http://127.0.0.1:9',
  callbackSecret: createSecretKey(Buffer.from('a secret of the callback addresses')),
}

/** The sandbox settings of one operator, at another address. */
export function gsmaSettings(
  url: string,
  letter: 'A' | 'C' | 'D' = 'A',
  more: Partial<GsmaSettings> = {},
): GsmaSettings {
  const found = sandboxOperators(url).find(({ provider }) => provider === `Operator${letter}`)
  if (found?.driver !== 'gsma-mm') throw new Error('no such operator')
  return { ...found, ...more }
}

export function checkoutSettings(url: string, more: Partial<CheckoutSettings> = {}): CheckoutSettings {
  const found = sandboxOperators(url).find(({ driver }) => driver === 'checkout-session')
  if (found?.driver !== 'checkout-session') throw new Error('no such operator')
  return { ...found, ...more }
}

/** Starts a simulator for the test, with functions to control it. */
export async function simulator() {
  const started = await startSimulator({ port: 0, controlToken })
  const { url } = started
  onTestFinished(() => started.close())
  async function control(method: 'GET' | 'POST', path: string, body?: object): Promise<unknown> {
    const response = await fetch(`${url}/_sim/${path}`, {
      method,
      headers: { 'x-control-token': controlToken, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response.json()
  }
  return {
    url,
    control,
    advance: (ms: number) => control('POST', 'clock', { advance_ms: ms }),
    operations: async (handle: OperatorHandle) =>
      (await control('GET', `operations?clientRef=${handle.clientRef}`)) as { id: string; state: string }[],
    outage: (operator: string, mode: string) => control('POST', 'outage', { operator, mode }),
  }
}

export function settingsOf(url: string): readonly OperatorSettings[] {
  return sandboxOperators(url)
}

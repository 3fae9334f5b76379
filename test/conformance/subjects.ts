import { createSecretKey } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type OperatorSettings, sandboxOperators } from '../../src/config/operators.ts'
import { createCheckoutDriver } from '../../src/operators/checkout-session.ts'
import { createGsmaDriver } from '../../src/operators/gsma-mm.ts'
import type { DriverDeps, OperatorDriver, RawCallback } from '../../src/operators/operator.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { createLog } from '../../src/telemetry/log.ts'
import type { OperatorFixture, DriverUnderTest } from './subject.ts'

const controlToken = 'conformance-control'
const closedPort = 'http://127.0.0.1:1'

/** The drivers of the product, each in the flows that its protocol has. */
export const subjects: readonly DriverUnderTest[] = [
  subject('gsma-mm, told by callback (OperatorA)', 'OperatorA'),
  subject('gsma-mm, polled (OperatorC)', 'OperatorC'),
  subject('gsma-mm 1.1, at once (OperatorD)', 'OperatorD'),
  subject('checkout-session (OperatorB)', 'OperatorB'),
]

function subject(name: string, provider: OperatorSettings['provider']): DriverUnderTest {
  return {
    name,
    customer: '+22370000001',
    stranger: '+22370030001',
    signsIn: provider !== 'OperatorB',
    secrets: /sandbox-(secret|key|webhook)|Bearer/,
    open: () => openFixture(provider),
  }
}

/** A simulator of its own, and a driver that speaks to it as the service would. */
async function openFixture(provider: OperatorSettings['provider']): Promise<OperatorFixture> {
  const simulator = await startSimulator({ port: 0, controlToken })
  const callbacks = await openCallbacks()
  const control = controlOf(simulator.url)
  const deps: DriverDeps = {
    log: createLog('silent'),
    clock: systemClock,
    callbackUrl: callbacks.url,
    callbackSecret: createSecretKey(Buffer.from('the key of the callback addresses')),
  }
  const driver = createDriver(settingsAt(simulator.url, provider), deps)
  const fresh = createDriver(settingsAt(simulator.url, provider), deps)
  const unreachable = createDriver(settingsAt(closedPort, provider), deps)
  await control('PUT', 'webhook', { url: `${callbacks.url}/operators/${provider}/callbacks/webhook` })
  return {
    driver,
    fresh,
    unreachable,
    callbacks: callbacks.seen,
    async putInForce({ effect, op, clientRef, params, times }) {
      const match = { operator: provider, op, clientRef }
      const { status, body } = await control('POST', 'faults', { effect, match, params, times })
      if (status === 201) return null
      const { message } = body as { message: string }
      if (message.includes(': not at ')) return message
      throw new Error(message)
    },
    endFaults: async () => void (await control('DELETE', 'faults')),
    advance: async (ms) => void (await control('POST', 'clock', { advance_ms: ms })),
    async executions(clientRef) {
      const { body } = await control('GET', `invariants?clientRef=${clientRef}`)
      const [row] = (body as { executions: { count: number; amount: string; reversed: string }[] }).executions
      return {
        count: row?.count ?? 0,
        amount: BigInt(row?.amount ?? 0),
        reversed: BigInt(row?.reversed ?? 0),
      }
    },
    problems: async () => ((await control('GET', 'invariants')).body as { problems: string[] }).problems,
    async creations(correlationId) {
      const { body } = await control('GET', `requests?correlationId=${correlationId}`)
      return (body as { method: string }[]).filter(({ method }) => method === 'POST').length
    },
    async close() {
      await Promise.all([
        driver.close(),
        fresh.close(),
        unreachable.close(),
        simulator.close(),
        callbacks.close(),
      ])
    },
  }
}

function createDriver(settings: OperatorSettings, deps: DriverDeps): OperatorDriver {
  return settings.driver === 'gsma-mm'
    ? createGsmaDriver(settings, deps)
    : createCheckoutDriver(settings, deps)
}

function settingsAt(url: string, provider: OperatorSettings['provider']): OperatorSettings {
  const settings = sandboxOperators(url).find((each) => each.provider === provider)
  if (!settings) throw new Error(`${provider} is not in the sandbox.`)
  return settings
}

function controlOf(url: string) {
  return async (method: string, path: string, body?: object) => {
    const response = await fetch(`${url}/_sim/${path}`, {
      method,
      headers: { 'x-control-token': controlToken, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: (text ? JSON.parse(text) : {}) as unknown }
  }
}

/** Records the operator's callbacks as they came. */
async function openCallbacks(): Promise<{ url: string; seen: RawCallback[]; close(): Promise<void> }> {
  const seen: RawCallback[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const pathToken = url.split('/').at(-1) ?? ''
      const one = Object.entries(headers).map(([name, value]) => [name, String(value)] as const)
      const body = Buffer.concat(chunks)
      seen.push({ method, headers: Object.fromEntries(one), body, pathToken, receivedAt: new Date() })
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen, close }
}

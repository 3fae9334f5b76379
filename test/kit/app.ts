import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scopes } from '../../src/identity/callers/scopes.ts'
import { type App, startApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { createMerchant } from '../../src/resources/merchants/create.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'

/** A merchant of a test, with a token that holds every scope. */
export interface TestMerchant {
  merchantId: number
  apiKey: string
  apiSecret: string
  token: string
}

export interface RestAnswer {
  status: number
  headers: Headers
  /** Bodies have every shape: each test knows the shape that it expects. */
  body: ReturnType<typeof JSON.parse>
}

/**
 * The whole service on a port of its own: real PostgreSQL, real HTTP to a real simulator. This is the lower
 * layer, and the test that starts it closes it. `fixture.ts` is the layer above: it belongs to one test file,
 * proves the ledger at its end, and acts as a merchant, an operator and a bookkeeper.
 */
export interface TestApp {
  app: App
  url: string
  database: TestDatabase
  simulator: Simulator
  controlToken: string
  /** Opens a merchant and signs it in. */
  merchant(name?: string): Promise<TestMerchant>
  /** Calls a path below `/merchant/api`. */
  rest(method: string, path: string, options?: RestOptions): Promise<RestAnswer>
  /** Runs a GraphQL operation over HTTP. */
  graphql(document: string, variables?: object, token?: string): Promise<RestAnswer>
  /** Starts a second service over the same database and secrets. @returns its address */
  sibling(): Promise<string>
  close(): Promise<void>
}

export interface RestOptions {
  token?: string | undefined
  body?: unknown
  headers?: Record<string, string>
}

export const controlToken = 'test-control-token'

/** The settings of a service for a test that asks more often than any client may. */
export const openLimits = {
  RATE_LIMIT_WRITES: '100000',
  RATE_LIMIT_READS: '100000',
  RATE_LIMIT_OBJECTS: '100000000',
}

/** @param shared a simulator that other tests use as well, and a database to copy */
export async function startTestApp(
  environment: Record<string, string> = {},
  shared: { simulator?: Simulator; template?: string } = {},
): Promise<TestApp> {
  const [database, simulator, dataDir] = await Promise.all([
    createTestDatabase(shared.template === undefined ? {} : { template: shared.template }),
    shared.simulator ?? startSimulator({ port: 0, controlToken }),
    mkdtemp(join(tmpdir(), 'merchant-payments-test-')),
  ])
  const config = readConfig({
    PORT: '0',
    DATA_DIR: dataDir,
    OPERATORS_URL: simulator.url,
    OPERATORS_CONTROL_TOKEN: controlToken,
    LOG_LEVEL: 'silent',
    IN_FLIGHT_MAX: '10000',
    ...environment,
  })
  const app = await startApp(config, database.connection)
  const url = app.services.addresses.publicUrl

  async function rest(method: string, path: string, options: RestOptions = {}): Promise<RestAnswer> {
    const raw = typeof options.body === 'string' ? options.body : JSON.stringify(options.body)
    return readAnswer(
      await fetch(`${url}/merchant/api${path}`, {
        method,
        headers: {
          ...(options.body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...(options.token === undefined ? {} : { Authorization: `Bearer ${options.token}` }),
          ...options.headers,
        },
        ...(options.body === undefined ? {} : { body: raw }),
      }),
    )
  }

  async function merchant(name = 'Boutique'): Promise<TestMerchant> {
    const made = await createMerchant(app.services, { name })
    const apiSecret = made.apiSecret.reveal()
    const { body } = await rest('POST', '/auth', {
      headers: { 'X-API-Key': made.apiKey, 'X-API-Secret': apiSecret },
      body: { scopes },
    })
    return {
      merchantId: made.merchantId,
      apiKey: made.apiKey,
      apiSecret,
      token: body['data'].token as string,
    }
  }

  async function graphql(document: string, variables: object = {}, token?: string): Promise<RestAnswer> {
    return readAnswer(
      await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
        body: JSON.stringify({ query: document, variables }),
      }),
    )
  }

  const siblings: App[] = []
  async function sibling(): Promise<string> {
    const started = await startApp(config, database.connection)
    siblings.push(started)
    return started.services.addresses.publicUrl
  }

  async function close(): Promise<void> {
    await Promise.all([app, ...siblings].map((each) => each.close()))
    if (!shared.simulator) await simulator.close()
    await database.drop()
    await rm(dataDir, { recursive: true, force: true })
  }
  return { app, url, database, simulator, controlToken, merchant, rest, graphql, sibling, close }
}

async function readAnswer(response: Response): Promise<RestAnswer> {
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : {} }
}

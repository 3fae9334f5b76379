import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CallLog } from './calls.ts'
import { checkoutHandler } from './checkout.ts'
import { SimulatorClock } from './clock.ts'
import { controlHandler } from './control.ts'
import { issueToken } from './credentials.ts'
import { SimulatorEngine } from './engine.ts'
import { factsAbout, factsOf } from './facts.ts'
import { gsmaHandler } from './gsma.ts'
import type { SimulatorCall, Handler } from './http.ts'
import { listener } from './http.ts'
import { JournalFile } from './journal.ts'
import type { CallbackNotice, SimulatedOperation, OperatorKey } from './model.ts'
import { operatorKeys } from './model.ts'
import { noticesOf } from './notices.ts'
import { Notifier } from './notifier.ts'
import { operators } from './operators.ts'
import { pagesHandler } from './pages/pages.ts'
import { RequestLog } from './request-log.ts'
import { Rules } from './rules.ts'
import { Store } from './store.ts'
import { treat } from './treatment.ts'
import type { SimulatorContext } from './context.ts'

export interface SimulatorOptions {
  /** 0 lets the system choose. */
  port?: number
  host?: string
  /** The file that keeps the operators' state for the next start; absent: memory only. */
  journalPath?: string
  /** The token for `/_sim/*`, sent in `x-control-token`; absent: the control interface does not exist. */
  controlToken?: string
  /** Makes the operators' own identifiers and the chances of faults repeatable. */
  seed?: number
  log?: (line: object) => void
  /** The public address, where it differs from the listening one. */
  publicUrl?: string
}

export interface Simulator {
  readonly url: string
  /** Stops at once; the journal holds all changes. */
  close(): Promise<void>
}

/**
 * Starts four mobile-money operators on one port.
 * @throws Error with `code` EADDRINUSE when the port is taken; Error when the journal cannot be read
 */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const log = options.log ?? (() => {})
  const onError = (error: unknown) => log({ level: 'error', event: 'fault', error: describe(error) })
  const context = buildContext(options, log, onError)
  const { store, clock, engine, notifier } = context
  const handle = dispatcher(context, options.controlToken || null)
  const server = createServer(listener(handle, () => store.written(), onError))
  server.keepAliveTimeout = 60_000
  server.headersTimeout = 10_000
  server.requestTimeout = 15_000
  server.on('clientError', (_error, socket) => socket.destroy())
  const close = async () => {
    clock.stop()
    notifier.close()
    engine.close()
    await new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
    store.close()
  }
  try {
    if (options.journalPath) {
      const journal = new JournalFile(options.journalPath, onError)
      store.keepIn(journal)
      journal.replay((changes, place) => store.play(changes, place))
    }
    await listen(server, options.port ?? 0, options.host ?? '127.0.0.1')
  } catch (error) {
    clock.stop()
    store.close()
    throw error
  }
  const { port, address } = server.address() as AddressInfo
  const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}`
  context.publicUrl = options.publicUrl?.replace(/\/+$/, '') ?? url
  clock.start(store.clock)
  engine.openBooks()
  return { url, close }
}

function buildContext(
  options: SimulatorOptions,
  log: (line: object) => void,
  onError: (error: unknown) => void,
): SimulatorContext {
  const store = new Store()
  const clock = new SimulatorClock(onError)
  const seed = options.seed === undefined ? randomBytes(8).toString('hex') : String(options.seed)
  const rules = new Rules(seed)
  const announce = (operation: SimulatedOperation, at: number): CallbackNotice[] => {
    const played = rules.play('tell', factsAbout(operation))
    const notes = noticesOf(operation, at, context.publicUrl, played)
    return store.webhook ? notes : notes.filter((note) => note.url !== null)
  }
  let numbers = 0
  const context: SimulatorContext = {
    store,
    clock,
    engine: new SimulatorEngine(store, clock, seed, rules, announce),
    rules,
    notifier: new Notifier(store, clock, log),
    requests: new RequestLog(),
    calls: new CallLog(),
    publicUrl: '',
    onError,
    nextNumber: () => ++numbers,
  }
  return context
}

/** Sends each request to the handler of its path. */
function dispatcher(context: SimulatorContext, controlToken: string | null): Handler {
  const handlers = new Map(operatorKeys.map((key) => [key, operatorHandler(key, context)]))
  const control = controlHandler(context, controlToken)
  const pages = pagesHandler(context)
  return (call) => {
    const key = operatorKeys.find((letter) => call.path.startsWith(`/op-${letter}/`))
    const handler = key && handlers.get(key)
    if (handler) return handler(call)
    return call.path.startsWith('/_sim/') ? control(call) : pages(call)
  }
}

function operatorHandler(key: OperatorKey, context: SimulatorContext): Handler {
  const profile = operators[key]
  const gsma = profile.protocol === 'gsma'
  const protocol = gsma ? gsmaHandler(profile, context) : checkoutHandler(profile, context)
  const tokenPath = `/op-${key}/oauth/token`
  const execute = (call: SimulatorCall) =>
    gsma && call.path === tokenPath && call.method === 'POST' ? issueToken(profile, call) : protocol(call)
  return async (call) => {
    const facts = factsOf(profile, call, context.store)
    const end = facts ? context.calls.arrive(facts) : () => {}
    call.whenOver(end)
    const delivery = await (facts && context.rules.concern(facts)
      ? treat({ profile, context, call, facts }, execute)
      : execute(call))
    // The call ends before its answer is sent: a caller that has the answer may call again before the server
    // notices that the answer was sent.
    if (delivery !== 'hang') end()
    context.requests.add(key, call, delivery, context.clock.now())
    return delivery
  }
}

function listen(server: ReturnType<typeof createServer>, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      server.on('error', () => {})
      resolve()
    })
  })
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

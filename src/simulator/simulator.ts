import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CallLog } from './calls.ts'
import { checkoutHandler } from './checkout.ts'
import { Clock } from './clock.ts'
import { controlHandler } from './control.ts'
import { issueToken } from './credentials.ts'
import { Engine } from './engine.ts'
import { factsAbout, factsOf } from './facts.ts'
import { gsmaHandler } from './gsma.ts'
import type { Call, Handler } from './http.ts'
import { listener } from './http.ts'
import { openJournal } from './journal.ts'
import type { Note, Operation, OperatorKey } from './model.ts'
import { operatorKeys } from './model.ts'
import { notesOf } from './notices.ts'
import { Notifier } from './notifier.ts'
import { operators } from './operators.ts'
import { pagesHandler } from './pages/pages.ts'
import { RequestLog } from './request-log.ts'
import { Rules } from './rules.ts'
import { Store } from './store.ts'
import { treat } from './treatment.ts'
import type { World } from './world.ts'

export interface SimulatorOptions {
  /** 0 lets the system choose. */
  port?: number
  host?: string
  /** Keeps what the operators know, and plays it back at the next start; absent: memory only. */
  journalPath?: string
  /** Opens `/_sim/*` to whoever carries it in `x-control-token`; absent: closed. */
  controlToken?: string
  /** Makes the operators' own identifiers and the chances of faults repeatable. */
  seed?: number
  log?: (line: object) => void
  /** The address that people use, where it differs from the one listened on. */
  publicUrl?: string
}

export interface Simulator {
  readonly url: string
  /** Stops at once; what was promised is in the journal. */
  close(): Promise<void>
}

/**
 * Starts four mobile-money operators on one port.
 * @throws Error with `code` EADDRINUSE when the port is taken; Error when the journal cannot be read
 */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const log = options.log ?? (() => {})
  const onError = (error: unknown) => log({ level: 'error', event: 'fault', error: describe(error) })
  const world = buildWorld(options, log, onError)
  const { store, clock, engine, notifier } = world
  const server = createServer(listener(dispatcher(world, options.controlToken || null), onError))
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
    if (options.journalPath)
      store.keepIn(await openJournal(options.journalPath, (changes) => store.play(changes)))
    await listen(server, options.port ?? 0, options.host ?? '127.0.0.1')
  } catch (error) {
    clock.stop()
    store.close()
    throw error
  }
  const { port, address } = server.address() as AddressInfo
  const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}`
  world.publicUrl = options.publicUrl?.replace(/\/+$/, '') ?? url
  clock.start(store.clock)
  engine.openBooks()
  return { url, close }
}

function buildWorld(
  options: SimulatorOptions,
  log: (line: object) => void,
  onError: (error: unknown) => void,
): World {
  const store = new Store()
  const clock = new Clock(onError)
  const seed = options.seed === undefined ? randomBytes(8).toString('hex') : String(options.seed)
  const rules = new Rules(seed)
  const announce = (operation: Operation, at: number): Note[] => {
    const played = rules.play('tell', factsAbout(operation))
    const notes = notesOf(operation, at, world.publicUrl, played)
    return store.webhook ? notes : notes.filter((note) => note.url !== null)
  }
  let numbers = 0
  const world: World = {
    store,
    clock,
    engine: new Engine(store, clock, seed, rules, announce),
    rules,
    notifier: new Notifier(store, clock, log),
    requests: new RequestLog(),
    calls: new CallLog(),
    publicUrl: '',
    onError,
    nextNumber: () => ++numbers,
  }
  return world
}

/** Sends each request through the door that its path belongs to. */
function dispatcher(world: World, controlToken: string | null): Handler {
  const doors = new Map(operatorKeys.map((key) => [key, operatorDoor(key, world)]))
  const control = controlHandler(world, controlToken)
  const pages = pagesHandler(world)
  return (call) => {
    const key = operatorKeys.find((letter) => call.path.startsWith(`/op-${letter}/`))
    const door = key && doors.get(key)
    if (door) return door(call)
    return call.path.startsWith('/_sim/') ? control(call) : pages(call)
  }
}

function operatorDoor(key: OperatorKey, world: World): Handler {
  const profile = operators[key]
  const gsma = profile.protocol === 'gsma'
  const protocol = gsma ? gsmaHandler(profile, world) : checkoutHandler(profile, world)
  const tokenPath = `/op-${key}/oauth/token`
  const execute = (call: Call) =>
    gsma && call.path === tokenPath && call.method === 'POST' ? issueToken(profile, call) : protocol(call)
  return async (call) => {
    const facts = factsOf(profile, call, world.store)
    const end = facts ? world.calls.arrive(facts) : () => {}
    void call.over.then(end)
    const delivery = await (facts ? treat({ profile, world, call, facts }, execute) : execute(call))
    // Whoever is answered may call again before the answer is known to have left.
    if (delivery !== 'hang') end()
    world.requests.add(key, call, delivery, world.clock.now())
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

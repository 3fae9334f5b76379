import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { styleText } from 'node:util'
import pg from 'pg'
import { type Config, readConfig } from '../config/config.ts'
import { ConfigError } from '../config/parse.ts'
import { assertNoHalfRestore } from '../database/backup-embedded.ts'
import { ensureGenerated } from '../database/ensure-generated.ts'
import { type SimulatorProcess, startSimulatorProcess } from '../operators/simulator-process.ts'
import { limits } from '../shared/limits.ts'
import { lockDataDir, openDataDir } from './data-dir-lock.ts'
import { explain } from './explain.ts'
import { firstScreen } from './first-screen.ts'

/** The database of a process: the owner's server, or the embedded one, which runs while a process uses it. */
export interface OpenedServer {
  connection: pg.ClientConfig
  stop(): Promise<void>
}

/**
 * Opens the database: `DATABASE_URL`, else the embedded PostgreSQL in `DATA_DIR`, which it starts if it does
 * not run yet.
 * @throws Error with a message for a person if the database cannot be reached or started
 */
export async function openServer(config: Config, say: (line: string) => void): Promise<OpenedServer> {
  if (config.databaseUrl) {
    const connection = { connectionString: config.databaseUrl.reveal() }
    await tryConnection(connection)
    return { connection, stop: async () => {} }
  }
  const { startEmbedded } = await import('../database/embedded.ts')
  const server = await startEmbedded({ dataDir: join(config.dataDir, 'pg'), durable: true, log: say })
  return { connection: server.connection(), stop: () => server.stop() }
}

/** Tests the connection, in up to two tries: modules load meanwhile and may use up the time of the first. */
async function tryConnection(connection: pg.ClientConfig, tries: number = connectTriesMax): Promise<void> {
  const client = new pg.Client({ ...connection, connectionTimeoutMillis: connectMs })
  try {
    await client.connect()
  } catch (error) {
    if (tries > 1) return await tryConnection(connection, tries - 1)
    const words = error instanceof AggregateError ? error.errors.map(String).join('; ') : String(error)
    throw new ConfigError(`DATABASE_URL: the server cannot be reached (${words})`)
  } finally {
    await client.end().catch(() => {})
  }
}

const connectMs = 5_000
const connectTriesMax = 2

/** Starts the operator simulator of a sandbox, unless it runs elsewhere. */
async function openSimulator(
  config: Config,
  opening: Promise<OpenedServer>,
): Promise<SimulatorProcess | null> {
  if (config.simulator?.url !== null) return null
  const { port, controlToken } = config.simulator
  const claimed = opening.then(async ({ connection }) => {
    if (!config.databaseUrl) await lockDataDir(connection, config)
  })
  const journalPath = join(config.dataDir, 'operators.jsonl')
  const [simulator] = await Promise.all([
    startSimulatorProcess({ port, controlToken, journalPath, claimed }),
    claimed,
  ])
  return simulator
}

/** Runs the service until SIGTERM or SIGINT: starts it, shows the first screen, drains, stops. */
export async function runService(): Promise<void> {
  const begun = performance.now()
  const say = (line: string) => process.stderr.write(`${styleText('dim', line)}\n`)
  try {
    const config = readConfig()
    openDataDir(config)
    if (!config.databaseUrl) await assertNoHalfRestore(config.dataDir)
    ensureGenerated()
    // PostgreSQL and the simulator start while the modules load.
    const opening = openServer(config, say)
    const [server, simulator, { startApp }, { createFirstMerchant }, { offerSandboxSignIn }] =
      await Promise.all([
        opening,
        openSimulator(config, opening),
        import('../app.ts'),
        import('../resources/merchants/create.ts'),
        import('../resources/team/sandbox-sign-in.ts'),
      ])
    const app = await startApp(config, server.connection, simulator?.url)
    void simulator?.ended.then((words) => app.services.log.error(words))
    const close = async () => {
      await app.close()
      await simulator?.close()
      await server.stop()
    }
    stopOnSignal(close, say, config.connections.drainDelayMs + limits.drainMs + closeMs)
    const isSandbox = config.mode === 'sandbox'
    const first = isSandbox
      ? await createFirstMerchant(app.services, 'Sandbox merchant', firstFundsXof)
      : null
    const signInToken = isSandbox ? await offerSandboxSignIn(app.services) : null
    process.stdout.write(
      firstScreen({ app, first, funds: firstFundsXof, signInToken, startedMs: performance.now() - begun }),
    )
    setTimeout(() => void tidyUp(), tidyAfterMs).unref()
  } catch (error) {
    process.stderr.write(`${styleText('red', explain(error))}\n`)
    process.exit(1)
  }
}

/** Frees the memory that only the start needed: 50 MB, which an idle process would otherwise keep. */
async function tidyUp(): Promise<void> {
  const session = new Session()
  session.connect()
  await session.post('HeapProfiler.collectGarbage')
  session.disconnect()
}

/** The wait before memory is freed. Choice: the first requests go first, because freeing takes 40 ms. */
const tidyAfterMs = 1_000
const firstFundsXof = 1_000_000n
/**
 * A stop is forced this long after the time that running requests have: the next start resumes all recorded
 * work.
 */
const closeMs = 2_500

/** A second signal within this time is ignored: Ctrl-C arrives from the terminal, and again through npm. */
const onceMs = 500

function stopOnSignal(close: () => Promise<void>, say: (line: string) => void, forceMs: number): void {
  let stoppingSince: number | null = null
  const stop = (signal: string) => {
    if (stoppingSince !== null) {
      if (performance.now() - stoppingSince > onceMs) process.exit(1)
      return
    }
    stoppingSince = performance.now()
    say(`${signal}: finishing the work under way (a second signal stops at once)`)
    setTimeout(() => {
      say('It takes too long: stopping now.')
      process.exit(1)
    }, forceMs).unref()
    void close().then(
      () => process.exit(0),
      (error: unknown) => {
        process.stderr.write(`${explain(error)}\n`)
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

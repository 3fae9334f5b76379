import type { RequestListener } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { createListener } from './http/listener.ts'
import { type HttpServer, listenHttp } from './http/server.ts'
import { openHeadLog } from './audit/audit-heads.ts'
import { chainAuditLog } from './audit/verify-chain.ts'
import { openAdmission } from './limits/admission.ts'
import { openAccess } from './identity/callers/authenticate.ts'
import { createRequestLimits } from './limits/request-limits.ts'
import { addressMatcher } from './shared/ip-whitelist.ts'
import { openMasterSecret } from './identity/secrets/secrets.ts'
import { type Addresses, addressesOf, type Config } from './config/config.ts'
import { labelWarnings } from './config/operator-faces.ts'
import { type OperatorSettings, sandboxOperators } from './config/operators.ts'
import type { Services } from './context.ts'
import { openSharedStatements } from './database/shared-statements.ts'
import { type Database, listen, openDatabase, openPool, probePools } from './database/client.ts'
import { assertClock } from './database/clock-skew.ts'
import { assertDurable } from './database/durability.ts'
import { migrate, serviceRole } from './database/migrate.ts'
import { poolSizes } from './database/pool-sizes.ts'
import { openRestores, type Restores } from './database/restores.ts'
import { verifyRowSecurity } from './database/verify-row-security.ts'
import { verifyOwnSessions } from './database/verify-session.ts'
import { openSandboxClock, type SandboxClock } from './database/sandbox-clock.ts'
import { openFeed } from './events/feed.ts'
import { startAnnouncer } from './events/announcer.ts'
import { type JobEngine, startEngine } from './jobs/engine.ts'
import { openDrains } from './jobs/drain.ts'
import { openLeases } from './jobs/leases.ts'
import { startJobs } from './jobs/schedule.ts'
import { openMailer } from './mail/mailer.ts'
import { createOperators } from './operators/registry.ts'
import { type SimulatorControl, simulatorControl } from './operators/sandbox.ts'
import { resolveJob } from './requests/check-slots.ts'
import { serviceJobs, serviceTasks } from './resources/jobs.ts'
import { subjects } from './resources/subjects.ts'
import { createSender } from './resources/webhooks/send.ts'
import { productionSchema, schema } from './resources/schema.ts'
import { systemClock } from './shared/clock.ts'
import { invariant } from './shared/invariant.ts'
import { limits } from './shared/limits.ts'
import { providers } from './shared/providers.ts'
import { createLog, type Log } from './telemetry/log.ts'

/** The running service. */
export interface App {
  services: Services
  /** Gives running requests at most `limits.drainMs` to end, then closes every part. */
  close(): Promise<void>
}

/** The functions that undo the steps of the start, in the order of the steps. */
type Closers = (() => Promise<void> | void)[]

/**
 * Builds every part of the service from the configuration, once; `close` closes them in reverse order. A
 * start that fails closes the parts that it had opened.
 * @param connection how to reach the database, which must be running; its migrations are applied here
 * @param simulatorUrl the address of the sandbox's simulator; null in production
 */
export async function startApp(
  config: Config,
  connection: pg.ClientConfig,
  simulatorUrl: string | null = config.simulator?.url ?? null,
): Promise<App> {
  const closers: Closers = []
  const log = createLog(config.logLevel)
  const close = closeOnce(closers, log)
  for (const warning of labelWarnings(config)) log.warn(warning)
  try {
    const inReach = operatorsInReach(config, simulatorUrl)
    const ending = new AbortController()
    const background = log.child({})
    ending.signal.addEventListener('abort', () => (background.level = 'silent'))
    return { ...(await build({ config, connection, log, background, inReach, ending }, closers)), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function build(start: StartContext, closers: Closers): Promise<Omit<App, 'close'>> {
  const { config, connection, background } = start
  await migrate(connection)

  const listener = Promise.withResolvers<RequestListener>()
  const http = await listenHttp(config.host, config.port, listener.promise, {
    ...config.connections,
    isTrustedProxy: addressMatcher(config.trustedProxies),
    log: start.log,
  })
  closers.push(() => http.drain(0))
  const addresses = addressesOf(config, http.port)
  const services = await openServices(start, addresses, closers)
  closers.push(() => writeLastHeads(services, background))
  closers.push(() => services.admission.close())
  closers.push(listenForNotifications(services, start))

  const listeners = createListener(services, config.mode === 'production' ? productionSchema() : schema, http)
  listener.resolve(listeners.listener)
  const schedule = startJobs(serviceJobs(services), background)
  services.notifyJob = (name) => schedule.notify(name)
  const engines = startEngines(services, start)
  services.jobsHealthy = () => schedule.healthy() && engines.every((engine) => engine.healthy())
  closers.push(() => Promise.all([schedule, ...engines].map((each) => each.close())).then(() => {}))
  closers.push(() => closeListeners(listeners, http))
  closers.push(() => start.ending.abort())
  closers.push(async () => {
    http.retire()
    if (config.connections.drainDelayMs > 0) await sleep(config.connections.drainDelayMs)
  })
  return { services }
}

/** Chains the audit entries that are not chained yet, and logs the heads. Waits one second at most. */
async function writeLastHeads({ database, access, auditHeads }: Services, log: Log): Promise<void> {
  const written = (async () => {
    while (await chainAuditLog(database.pool, access.master.auditKey));
    await auditHeads.write()
  })()
  const missed = written.catch((error: unknown) =>
    log.warn({ err: error }, 'the heads of the audit log could not be written'),
  )
  await Promise.race([missed, sleep(limits.drainOperatorsMs, undefined, { ref: false })])
}

/** Starts the job engines. Webhooks have an engine of their own: receivers that hang never delay payouts. */
function startEngines(services: Services, { connection, background }: StartContext): JobEngine[] {
  const { 'webhooks.deliver': deliver, ...others } = serviceTasks(services)
  const common = { connection, role: serviceRole, log: background }
  return [
    // Room for one job of each operator, and for as many other jobs: batches, e-mails, and jobs that only
    // tell a running job of more work (`drain.ts`).
    startEngine({ ...common, tasks: others, jobsAtOnce: 2 * providers.length, sessionsMax: 8 }),
    startEngine({
      ...common,
      tasks: { 'webhooks.deliver': deliver },
      jobsAtOnce: limits.endpointQueuesMax,
      sessionsMax: 4,
    }),
  ]
}

/** The values that the start hands to its steps. */
interface StartContext {
  config: Config
  connection: pg.ClientConfig
  log: Log
  /**
   * The log of jobs and of database sessions. It is silent while the service ends: PostgreSQL may have been
   * stopped before this process, and the next start continues the jobs.
   */
  background: Log
  inReach: OperatorsInReach
  ending: AbortController
}

async function openServices(start: StartContext, addresses: Addresses, closers: Closers): Promise<Services> {
  const { config, log, background, inReach, ending } = start
  const { database, restores } = await openChecked(start, closers)
  const { pool } = database
  const master = await openMasterSecret(config.masterSecret, config.dataDir)
  const access = await openAccess({ pool, master, trustedProxies: config.trustedProxies, log })
  closers.push(() => access.close())
  const sandboxClock = config.mode === 'sandbox' ? await openSandboxClock(pool) : null
  const clock = sandboxClock ?? systemClock
  const feed = openFeed(pool, background)
  closers.push(() => feed.close())
  const announcer = startAnnouncer(pool, background)
  closers.push(() => announcer.close())
  const sharedStatements = openSharedStatements(pool)
  closers.push(() => sharedStatements.idle())
  const webhooks = openWebhooks(start, closers)
  announcer.hear(webhooks.leases.pool)
  // The database closes only after the result of each operator call is recorded, also if no answer came.
  const inFlight = new Map<string, Promise<unknown>>()
  const settled = async () => void (await Promise.allSettled(inFlight.values()))
  closers.push(settled)
  const [{ callbackUrl }, { callbackSecret }] = [addresses, master]
  const operators = createOperators(inReach.settings, { log, clock, callbackUrl, callbackSecret })
  closers.push(() => operators.close())
  closers.push(() => Promise.race([settled(), sleep(limits.drainOperatorsMs, undefined, { ref: false })]))
  const begun = performance.now()
  const services: Services = {
    config,
    addresses,
    log,
    clock,
    database,
    sharedStatements,
    restores,
    access,
    admission: openAdmission(config.pace.inFlightMax, () => probePools(database)),
    requestLimits: createRequestLimits(config.pace, { pool, log }),
    mailer: openMailer(config.mail, log),
    operators,
    auditHeads: openHeadLog(pool, log),
    ...webhooks,
    feed,
    inFlight,
    checkSlots: new Map(),
    subjects,
    ending: ending.signal,
    streams: new Map(),
    sandbox: null,
    simulatorUrl: inReach.url,
    notifyJob: () => {},
    upMs: () => performance.now() - begun,
    jobsHealthy: () => false,
  }
  const { control } = inReach
  if (control && sandboxClock) {
    services.sandbox = { advanceClock: (...move) => advanceClock(services, control, sandboxClock, ...move) }
    await nameWebhook(services, control)
  }
  return services
}

/**
 * Opens the pools of the database and checks their sessions. Before that, finds out whether the database was
 * restored from a backup.
 */
async function openChecked(
  start: StartContext,
  closers: Closers,
): Promise<Pick<Services, 'database' | 'restores'>> {
  const { connection, background: log } = start
  const { dataDir, mode, databaseEpoch: expectedEpoch } = start.config
  const restores = await openRestores({ connection, dataDir, expectedEpoch, suspendsUnknown: true, log })
  const database = openPools(start, restores)
  closers.push(() => database.close())
  // Opens the first session of each pool, so that a session that fails its checks makes the start fail.
  await probePools(database)
  await verifyOwnSessions(database.merchantPool)
  await verifyRowSecurity(database.pool)
  restores.use(database.pool)
  closers.push(() => restores.record())
  if (mode === 'production') await assertDurable(database.pool)
  await assertClock(database.pool)
  return { database, restores }
}

function openPools({ connection, background }: StartContext, restores: Restores): Database {
  return openDatabase({
    checkSession: (client) => restores.checkSession(client),
    connection,
    poolMax: poolSizes.allMerchants,
    merchantPoolMax: poolSizes.oneMerchant,
    role: serviceRole,
    log: (event) => background.warn(event),
  })
}

/** Opens the sender of webhooks and the leases of queues, with database sessions of their own. */
function openWebhooks(
  { config, connection, background, ending }: StartContext,
  closers: Closers,
): Pick<Services, 'webhookSender' | 'leases' | 'drains'> {
  const webhookSender = createSender({ mode: config.mode })
  closers.push(() => webhookSender.close())
  const pool = openPool(connection, poolSizes.leases, serviceRole, (event) => background.warn(event))
  const leases = openLeases(pool, background)
  closers.push(() => leases.close())
  return { webhookSender, leases, drains: openDrains(ending.signal, leases) }
}

async function closeListeners(listeners: { close(): Promise<void> }, http: HttpServer): Promise<void> {
  const drained = http.drain(limits.drainMs)
  await listeners.close()
  await drained
}

/** The operators that the service talks to, and in a sandbox the simulator that plays them. */
interface OperatorsInReach {
  settings: readonly OperatorSettings[]
  url: string | null
  control: SimulatorControl | null
}

function operatorsInReach(config: Config, simulatorUrl: string | null): OperatorsInReach {
  if (!config.simulator) return { settings: config.operators, url: null, control: null }
  invariant(simulatorUrl !== null, 'a sandbox has a simulator')
  return {
    settings: sandboxOperators(simulatorUrl, config.simulator.limits),
    url: simulatorUrl,
    control: simulatorControl(simulatorUrl, config.simulator.controlToken),
  }
}

/** Tells the simulator the address for OperatorB's webhooks. If that fails, tries again every two seconds. */
async function nameWebhook(services: Services, control: SimulatorControl): Promise<void> {
  const address = `${services.addresses.callbackUrl}/operators/OperatorB/callbacks/webhook`
  try {
    await control.setWebhook(address)
  } catch (error) {
    services.log.warn({ err: error }, 'the operator simulator cannot be reached; trying again')
    setTimeout(() => void nameWebhook(services, control), webhookRetryMs).unref()
  }
}

const webhookRetryMs = 2_000

/**
 * Moves the time of the simulator, then of the service, and starts the jobs that may now be due. The
 * simulator goes first, so that its customers have acted before the service asks about their payments.
 */
async function advanceClock(
  services: Services,
  control: SimulatorControl,
  clock: SandboxClock,
  ...[ms, move, record]: Parameters<SandboxClock['advance']>
): Promise<Date> {
  await control.advanceClock(ms, move)
  const now = await clock.advance(ms, move, record)
  for (const provider of providers) services.notifyJob(resolveJob(provider))
  services.notifyJob('payouts.due')
  services.notifyJob('webhooks.due')
  return now
}

/**
 * Listens to notifications of other processes. A lost notification about events only costs time, because the
 * feed also polls. The sandbox clock is read again at each reconnection.
 * @returns a function that ends the listening
 */
function listenForNotifications({ clock, feed }: Services, start: StartContext): () => Promise<void> {
  const { connection, background } = start
  const notRead = (error: unknown) => background.warn({ err: error }, 'the sandbox clock could not be read')
  const refreshClock = () => {
    if ('refresh' in clock) (clock as SandboxClock).refresh().catch(notRead)
  }
  const listener = listen({
    connection,
    channels: ['events', 'clock'],
    onNotification: (channel, payload) => (channel === 'events' ? feed.notify(payload) : refreshClock()),
    onConnect: () => {
      feed.notify('*')
      refreshClock()
    },
    log: (event) => background.warn(event),
  })
  return () => listener.close()
}

function closeOnce(closers: Closers, log: Log): () => Promise<void> {
  let closing: Promise<void> | null = null
  return () => {
    closing ??= (async () => {
      for (const close of closers.toReversed()) {
        try {
          await close()
        } catch (error) {
          // A part that cannot be closed must not keep the other parts open.
          log.warn({ err: error }, 'a part of the service could not be closed')
        }
      }
    })()
    return closing
  }
}

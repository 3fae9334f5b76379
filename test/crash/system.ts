import { join } from 'node:path'
import { scopes } from '../../src/identity/callers/scopes.ts'
import { type Home, newHome, run, signIn } from '../kit/program.ts'
import { type CrashOperators, operatorsControlToken, startOperators } from './operator.ts'
import { randomFrom } from '../kit/random.ts'
import { type Postgres, startPostgres } from './postgres.ts'
import { type Proxy, startProxy } from './proxy.ts'
import { type FollowingReader, startReaders } from './readers.ts'
import { createService, type Service } from './under-test.ts'
import type { Merchant, WorkloadRecord } from './workload.ts'

/** The system of a run: the processes that are killed, and the readers and operators that stay. */
export interface CrashSystem {
  home: Home
  postgres: Postgres
  proxy: Proxy
  operators: CrashOperators
  /** The processes of the service over one database, each at its own address. */
  services: readonly (Service & { url: string })[]
  merchants: Merchant[]
  readers: FollowingReader[]
  record: WorkloadRecord
  logPath: string
  /** Ends all processes. @param keep leaves the folder with its log */
  close(keep: boolean): Promise<void>
}

const merchantsCount = 2

/**
 * The pause after an operator failed, a tenth of the sandbox's own, like every wait of `short-limits.ts`. It
 * doubles each time when the first call after it fails, and some payees make a call fail once.
 */
const shortBreakers = Object.fromEntries(
  ['A', 'B', 'C', 'D'].map((letter) => [`OPERATOR_${letter}_BREAKER_OPEN_MS`, '100']),
)

/**
 * Starts PostgreSQL behind the proxy, the operators, the service, two merchants and their readers.
 * @throws the reason of the signal where that aborts meanwhile; nothing is left then
 */
export async function openSystem(options: {
  seed: number
  processes: number
  tree: string
  signal: AbortSignal
}): Promise<CrashSystem> {
  const { seed, processes, tree, signal } = options
  const homes = await Promise.all(
    Array.from({ length: processes }, () =>
      newHome({
        LOG_LEVEL: 'warn',
        OPERATORS_CONTROL_TOKEN: operatorsControlToken,
        SECRET_KEY: '\u0007'.repeat(32),
        ...shortBreakers,
      }),
    ),
  )
  const [home] = homes
  if (!home) throw new Error('a run needs a service')
  const dir = join(home.dataDir, '..')
  const closers: (() => Promise<unknown>)[] = []
  const close = async (keep: boolean) => {
    for (const each of closers.toReversed()) await each()
    for (const each of keep ? homes.slice(1) : homes) await each.remove()
  }
  async function opened<T>(opening: Promise<T>, end: (part: T) => Promise<unknown>): Promise<T> {
    const part = await opening
    closers.push(() => end(part))
    signal.throwIfAborted()
    return part
  }
  try {
    const postgres = await opened(
      startPostgres(join(dir, 'pg'), () => {}),
      (each) => each.stop(),
    )
    const proxy = await opened(startProxy(postgres.socket, randomFrom(seed + 1)), (each) => each.close())
    const operators = await opened(startOperators(join(dir, 'operators.jsonl'), seed), (each) => each.close())
    const record: WorkloadRecord = {
      acknowledgements: [],
      requests: 0,
      answered: 0,
      answers: new Map(),
      complaints: [],
      batches: [],
    }
    const logPath = join(dir, 'service.log')
    const onEnd = (words: string) => record.complaints.push(words)
    const services: (Service & { url: string })[] = []
    for (const { url, environment } of homes) {
      environment['DATABASE_URL'] = `postgresql://${postgres.user}@127.0.0.1:${proxy.port}/payments`
      environment['OPERATORS_URL'] = operators.url
      const service = createService({ tree, environment, logPath, onEnd })
      services.push({ ...service, url })
      closers.push(() => service.close())
      await service.start()
      signal.throwIfAborted()
    }
    const merchants = await Promise.all(
      Array.from({ length: merchantsCount }, () => openMerchant(home, tree)),
    )
    const urls = homes.map(({ url }) => url)
    const readers = startReaders(urls, merchants, randomFrom(seed + 2))
    closers.push(() => Promise.all(readers.map((reader) => reader.stop())))
    return { home, postgres, proxy, operators, services, merchants, readers, record, logPath, close }
  } catch (error) {
    await close(false)
    throw error
  }
}

async function openMerchant(home: Home, tree: string): Promise<Merchant> {
  const args = [join(tree, 'src/cli.ts'), 'merchant', 'create', '--name', 'Crash', '--json']
  const { code, stdout, stderr } = await run(home, 'node', args)
  if (code !== 0) throw new Error(`no merchant: ${stderr}`)
  const made = JSON.parse(stdout) as { merchant_id: number; api_key: string; api_secret: string }
  // Money for payments out, before the first collection.
  const fund = [join(tree, 'src/cli.ts'), 'merchant', 'fund', '--id', String(made.merchant_id)]
  const funded = await run(home, 'node', [...fund, '--amount', '1000000'])
  if (funded.code !== 0) throw new Error(`no money: ${funded.stderr}`)
  const { Authorization } = await signIn(home, made.api_key, made.api_secret, scopes)
  return { id: made.merchant_id, authorization: Authorization }
}

/** Moves the time of the service and of the operators. */
export async function advanceClock(system: CrashSystem, by: string): Promise<void> {
  const { home, merchants } = system
  const answer = await fetch(`${home.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: merchants[0]?.authorization ?? '' },
    body: JSON.stringify({
      query: 'mutation ($by: Duration!) { sandboxAdvanceClock(by: $by) }',
      variables: { by },
    }),
  })
  const { errors } = (await answer.json()) as { errors?: object[] }
  if (errors) throw new Error(`the clock was not moved: ${JSON.stringify(errors)}`)
}

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventuallyGives, patienceMs } from './eventually.ts'

const root = join(import.meta.dirname, '../..')
const bin = join(root, 'node_modules/.bin')

/** The options that `npm start` gives node: a small young generation keeps a busy service below 400 MB. */
export const startOptions: readonly string[] = readStartOptions()

function readStartOptions(): string[] {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: { start: string }
  }
  const [, options] = /^exec node (.*)src\/main\.ts$/.exec(scripts.start) ?? []
  if (options === undefined) throw new Error(`npm start does something else: ${scripts.start}`)
  return options.split(' ').filter((option) => option !== '')
}

/** A folder and ports of its own for one service. */
export interface Home {
  dataDir: string
  url: string
  operatorsUrl: string
  environment: Record<string, string>
  /** Removes the folder, once no process uses it any more. */
  remove(): Promise<void>
}

export async function newHome(more: Record<string, string> = {}): Promise<Home> {
  const dir = mkdtempSync(join(tmpdir(), 'merchant-payments-home-'))
  // PostgreSQL runs under another account when the tests run as root.
  chmodSync(dir, 0o755)
  const [port, operatorsPort] = [await freePort(), await freePort()]
  const dataDir = join(dir, 'data')
  const { PATH = '', HOME = dir } = process.env
  return {
    dataDir,
    url: `http://127.0.0.1:${port}`,
    operatorsUrl: `http://127.0.0.1:${operatorsPort}`,
    environment: {
      PATH: `${bin}:${PATH}`,
      HOME,
      PORT: String(port),
      OPERATORS_PORT: String(operatorsPort),
      DATA_DIR: dataDir,
      ...more,
    },
    async remove() {
      await eventuallyGives(
        () => processesIn(dataDir),
        (left) => left.length === 0,
      )
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/**
 * The ports of tests, from 10,000 to 14,999: each worker of a run has a thousand of its own, and each process
 * a hundred of them. No other test takes a port before its service listens, or while it starts again.
 */
const portsPerProcess = 100
const workers = 5
const processesPerWorker = 10
const firstPort =
  10_000 +
  portsPerProcess *
    ((Number(process.env['VITEST_POOL_ID'] ?? 0) % workers) * processesPerWorker +
      (process.pid % processesPerWorker))
let portsGiven = 0

/** A free port of this process that was not given for as long as possible. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < portsPerProcess; tries += 1) {
    const port = firstPort + (portsGiven++ % portsPerProcess)
    if (await isFree(port)) return port
  }
  throw new Error(`No port from ${firstPort} to ${firstPort + portsPerProcess - 1} is free.`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const isTaken = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(true))
    server.listen(port, '127.0.0.1', () => resolve(false))
  })
  if (isTaken) return false
  server.close()
  await once(server, 'close')
  return true
}

/** A service that runs as a process of its own. */
export interface Running {
  child: ChildProcess
  /** The text of the first screen. */
  screen: string
  /** Its standard error so far: its log. */
  errors(): string
  /** Ends the program with a signal. @returns its exit code, null where the signal ended it */
  end(signal: NodeJS.Signals): Promise<number | null>
  /** Sends the signal to npm, the service and its simulator at once, as Ctrl-C in a terminal does. */
  endGroup(signal: NodeJS.Signals): Promise<number | null>
  /** Ends all processes of the group, after any failure. */
  destroy(): void
}

/**
 * Starts the service, in a process group of its own, and waits for its first screen.
 * @param command `npm start` as a person would, or node alone: then its process is the service itself
 */
export async function startProgram(
  home: Home,
  command: readonly [string, ...string[]] = [join(bin, 'node'), ...startOptions, 'src/main.ts'],
): Promise<Running> {
  const [program, ...args] = command
  const child = spawn(program, args, {
    cwd: root,
    env: home.environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const exit = once(child, 'exit')
  let screen = ''
  let complaints = ''
  child.stderr.on('data', (chunk) => (complaints += String(chunk)))
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      screen += String(chunk)
      if (screen.includes('npm run demo')) resolve()
    })
    void exit.then(() => reject(new Error(`It ended before its first screen:\n${screen}${complaints}`)))
  })
  return {
    child,
    screen,
    errors: () => complaints,
    async end(signal) {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal)
      await exit
      return child.exitCode
    },
    async endGroup(signal) {
      if (child.pid !== undefined) process.kill(-child.pid, signal)
      await exit
      return child.exitCode
    },
    destroy() {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
      } catch {
        // The whole group ended already, as it should.
      }
    },
  }
}

export interface EndedProgram {
  code: number
  stdout: string
  stderr: string
}

/** Runs a command in the project's folder to its end, with any exit code. */
export async function run(
  home: Home,
  program: string,
  args: readonly string[],
  timeout = patienceMs,
): Promise<EndedProgram> {
  try {
    const { stdout, stderr } = await promisify(execFile)(program, [...args], {
      cwd: root,
      env: home.environment,
      timeout,
    })
    return { code: 0, stdout, stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    if (typeof code !== 'number') throw error
    return { code, stdout, stderr }
  }
}

/** A command that runs until the test ends it. */
export interface ProgramCommand {
  /**
   * Waits until the output matches.
   * @returns the whole output.
   * @throws Error with the output where the command ended before
   */
  said(pattern: RegExp): Promise<string>
  /** @returns its exit code */
  end(signal: NodeJS.Signals): Promise<number | null>
}

/** Starts a command in the project's folder. */
export function startCommand(home: Pick<Home, 'environment'>, args: readonly string[]): ProgramCommand {
  const [program, ...rest] = [join(bin, 'node'), ...args] as const
  const child = spawn(program, rest, { cwd: root, env: home.environment, stdio: ['ignore', 'pipe', 'pipe'] })
  const exit = once(child, 'exit')
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
  return {
    async said(pattern) {
      const ended = new AbortController()
      void exit.then(() => ended.abort())
      const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(patienceMs)])
      while (!pattern.test(output)) {
        await once(child.stdout, 'data', { signal }).catch(() => {
          throw new Error(`It did not say ${pattern}:\n${output}`)
        })
      }
      return output
    },
    async end(signal) {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal)
      await exit
      return child.exitCode
    },
  }
}

export const admin = (home: Home, ...args: string[]): Promise<EndedProgram> =>
  run(home, 'node', ['src/cli.ts', ...args])

/** Lists the living processes of this service: PostgreSQL, the simulator, the service. */
export function processesOf(home: Home): Promise<string[]> {
  return processesIn(home.dataDir)
}

async function processesIn(dataDir: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid=,args='])
  return stdout.split('\n').filter((line) => line.includes(dataDir))
}

export interface ProgramAnswer {
  status: number
  body: ReturnType<typeof JSON.parse>
}

/** Calls a path below `/merchant/api`. */
export async function call(
  home: Home,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: object,
): Promise<ProgramAnswer> {
  const answer = await fetch(`${home.url}/merchant/api${path}`, {
    method,
    headers: { ...headers, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: await answer.json() }
}

/** Signs in with a key, for the usual scopes or the given ones. @returns the headers that carry the token */
export async function signIn(
  home: Home,
  key: string,
  secret: string,
  scopes?: readonly string[],
): Promise<{ Authorization: string }> {
  const pair = { 'X-API-Key': key, 'X-API-Secret': secret }
  const { status, body } = await call(home, 'POST', '/auth', pair, scopes && { scopes })
  if (status !== 200) throw new Error(`sign-in: ${status} ${JSON.stringify(body)}`)
  return { Authorization: `Bearer ${body['data'].token}` }
}

/** The output of `merchant create --json`. */
export interface MadeMerchant {
  merchant_id: number
  api_key: string
  api_secret: string
}

/** Creates a merchant as an administrator does. @throws Error where the command fails */
export async function createMerchant(home: Home, runAdmin = admin): Promise<MadeMerchant> {
  const { code, stdout, stderr } = await runAdmin(home, 'merchant', 'create', '--name', 'Épicerie', '--json')
  if (code !== 0 || stderr !== '') throw new Error(`merchant create ended with ${code}: ${stderr}`)
  return JSON.parse(stdout) as MadeMerchant
}

/** The token of the link that the first screen shows. */
export function dashboardToken(screen: string): string | undefined {
  return /^ {2}Dashboard {5}http:\S+\/app#([\w-]{43}) /m.exec(screen)?.[1]
}

/** Signs in with the token of a link: `acceptInvitation` or `sandboxSignIn`. */
export async function enterBy(home: Home, mutation: string, input: object): Promise<object | undefined> {
  const type = `${mutation[0]?.toUpperCase()}${mutation.slice(1)}Input`
  const query = `mutation ($input: ${type}!) { ${mutation}(input: $input) {
    ... on SignedIn { name role } ... on Refusal { code } } }`
  const response = await fetch(`${home.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query, variables: { input } }),
  })
  const { data } = (await response.json()) as { data: Record<string, object> }
  return data[mutation]
}

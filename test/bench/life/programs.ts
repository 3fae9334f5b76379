import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { startChild } from '../child.ts'
import type { ProductOptions, ProductReady } from '../processes/product.ts'

/** A checkout of the project whose programs are measured. */
export interface Tree {
  name: string
  folder: string
}

/** A program under way. */
interface Program {
  pid: number
  /** Ends it in order. */
  stop(): Promise<void>
}

export interface Programs {
  services: readonly Program[]
  ports: readonly number[]
  simulator: Program
  /** Ends all of them; what they counted in the database is then written there. */
  stop(): Promise<void>
}

/** Makes merchants with tokens for everything, by the service of the tree, which applies the migrations. */
export async function makeMerchants(
  tree: Tree,
  databaseUrl: string,
  dataDir: string,
  merchants: number,
): Promise<ProductReady['merchants']> {
  const options: ProductOptions = {
    databaseUrl,
    dataDir,
    operatorsUrl: unreachable,
    merchants,
    inFlightMax: null,
  }
  const child = await startChild<ProductReady>(
    'product.ts',
    options,
    join(tree.folder, 'test/bench/processes'),
  )
  await child.close()
  return child.ready.merchants
}

const unreachable = 'http://127.0.0.1:9'

/** Starts the simulator and the service of the tree, as `npm run operators` and `npm start` do. */
export async function startPrograms(
  tree: Tree,
  { databaseUrl, dataDir, processes }: { databaseUrl: string; dataDir: string; processes: number },
): Promise<Programs> {
  const [operatorsPort = 0, ...ports] = await freePorts(processes + 1)
  const operatorsUrl = `http://127.0.0.1:${operatorsPort}`
  const simulator = await startSimulator(tree, operatorsPort, dataDir)
  const services: Program[] = []
  for (const port of ports) {
    const environment = {
      ...settings,
      PORT: String(port),
      DATA_DIR: dataDir,
      DATABASE_URL: databaseUrl,
      OPERATORS_URL: operatorsUrl,
    }
    services.push(await startProgram(tree, scriptsOf(tree).start, environment, 'npm run demo'))
  }
  return {
    services,
    ports,
    simulator,
    async stop() {
      await Promise.all(services.map((service) => service.stop()))
      await simulator.stop()
    },
  }
}

/** Starts the simulator of the tree; its journal lies in the folder. */
export async function startSimulator(tree: Tree, port: number, folder: string): Promise<Program> {
  mkdirSync(folder, { recursive: true })
  const journal = join(folder, `operators-${port}.jsonl`)
  const flags = ['--port', String(port), '--journal', journal, '--json']
  return startProgram(tree, [...scriptsOf(tree).operators, ...flags], {}, '"ready"')
}

const settings = {
  LOG_LEVEL: 'error',
  RATE_LIMIT_WRITES: '1000000000',
  RATE_LIMIT_READS: '1000000000',
  RATE_LIMIT_PUBLIC: '1000000000',
  RATE_LIMIT_OBJECTS: '1000000000',
}

/** The arguments of node in the scripts of a tree: files have moved between versions. */
function scriptsOf({ folder }: Tree): Record<'start' | 'operators', string[]> {
  const { scripts } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    scripts: Record<'start' | 'operators', string>
  }
  const args = (script: string) =>
    script
      .replace(/^exec /, '')
      .split(' ')
      .slice(1)
  return { start: args(scripts.start), operators: args(scripts.operators) }
}

async function startProgram(
  { folder }: Tree,
  args: readonly string[],
  environment: Record<string, string>,
  readyWords: string,
): Promise<Program> {
  const { PATH = '', HOME = folder } = process.env
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { PATH, HOME, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // A bench that is interrupted must leave nothing behind.
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  await ready(child, args.join(' '), readyWords)
  return {
    pid: child.pid ?? 0,
    async stop() {
      process.off('exit', kill)
      if (child.exitCode !== null || child.signalCode !== null) return
      const exit = once(child, 'exit')
      child.kill('SIGTERM')
      await exit
    },
  }
}

async function ready(child: ChildProcess, command: string, words: string): Promise<void> {
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (part) => {
      if (said.includes(words)) return
      said += String(part)
      if (said.includes(words)) resolve()
    })
    child.once('exit', () => reject(new Error(`${command} ended before it was ready: ${said}`)))
  })
}

/** Ports that are free together: all are taken before any is given back. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map((server) => new Promise((closed) => server.close(closed))))
  return ports
}
